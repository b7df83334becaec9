#!/bin/bash
# Runs inside a container of kind's published node image and makes it a node of the rack; `docker commit` keeps the result.
#   enrich.sh PLUGINS CONFIGURATION STATE UNITS MASKED PACKAGES   (the lists are words in one argument)
set -euo pipefail
plugins=$1 configuration=$2 state=$3 units=$4 masked=$5 packages=$6
here=/kind/sparkloom
export DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1

echo "packages: $packages"
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $packages </dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin

echo "CNI plugins where K3s keeps them; the published image has four, a rack needs host-device, bridge and static too"
mkdir -p "$plugins" /opt/cni/bin "$configuration" "$state" /etc/netplan /etc/kubernetes/manifests
cp -rT /usr/lib/cni /opt/cni/bin
cp -rT /opt/cni/bin "$plugins"
rm -rf /usr/lib/cni
ln -s /opt/cni/bin /usr/lib/cni

echo "the runtime behind a wrapper that asks for no more than this machine has"
[ -x /usr/sbin/runc ] || mv /usr/local/sbin/runc /usr/sbin/runc
install -m 755 $here/runc-wrapper /usr/local/sbin/runc

echo "units"
# shellcheck disable=SC2086
systemctl enable $units
# shellcheck disable=SC2086
systemctl mask $masked

echo "containers: one more hook, which shows the node's RDMA devices inside them"
python3 - /etc/containerd/cri-base.json /usr/local/lib/sparkloom-testbed/pod-hook <<'PY'
import json, pathlib, sys
place, hook = pathlib.Path(sys.argv[1]), sys.argv[2]
spec = json.loads(place.read_text())
spec["process"].pop("rlimits", None)
hooks = spec.setdefault("hooks", {}).setdefault("createContainer", [])
if hook not in [entry["path"] for entry in hooks]:
    hooks.append({"path": hook})
place.write_text(json.dumps(spec))
PY

echo "images"
containerd >/tmp/containerd.log 2>&1 &
daemon=$!
for _ in $(seq 60); do ctr version >/dev/null 2>&1 && break; sleep 0.5; done
ctr --namespace=k8s.io images import --label=io.cri-containerd.pinned=pinned --no-unpack $here/images.tar ||
  { tail /tmp/containerd.log; exit 1; }
ctr --namespace=k8s.io images ls -q
kill $daemon
wait $daemon || true
rm -rf $here /tmp/containerd.log
