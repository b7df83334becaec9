#!/usr/bin/env bash
# A stand-in for one DGX Spark that answers on SSH and is nothing more: a real sshd on a loopback address of this machine,
# in namespaces of its own in which every file system of the machine is read-only, so that no playbook can change it.
#   spark.sh FOLDER NAME ADDRESS PORT    FOLDER: sshd with its libraries below program/, NAME.key, authorized_keys
# What it says of itself (uname, nvidia-smi, ip, sudo) comes from bin/ beside this file, its ports from a tree over /sys.
set -euo pipefail
folder=$1 name=$2 address=$3 port=$4
here=$(cd "$(dirname "$0")" && pwd)
python=$(dirname "$(readlink -f "$(command -v python3)")")

if [[ ${5-} != inside ]]; then
  exec unshare --mount --uts --pid --fork --kill-child --mount-proc "$0" "$@" inside
fi

hostname "$name"
files=$(mktemp -d)
cp -rL "$folder/program" "$folder/authorized_keys" "$here/bin" "$files"
cp "$folder/$name.key" "$files/host_key"
cp "$here/../../make/kind/node/usr/local/sbin/nvidia-smi" "$files/bin"
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/home /run/spark
cp -r "$files/." /run/spark
rm -rf "$files"
echo "$address" >/run/spark/address

# The ordinary user of a Spark is root's double here: there is no sudo to ask, and nothing that root could change.
{ grep -v '^sshd:' /etc/passwd; echo "sshd:x:74:65534::/run/sshd:/usr/sbin/nologin"; echo "nvidia:x:0:0::/run/home:/bin/bash"; } >/run/passwd
mount --bind /run/passwd /etc/passwd

# Of its own, as its host key is.
echo "$name" | md5sum | cut -d' ' -f1 >/run/machine-id
mount --bind /run/machine-id /etc/machine-id

nic() { # name, vendor, device, carrier
  mkdir -p "/run/net/$1/device"
  echo "$2" >"/run/net/$1/device/vendor"
  echo "$3" >"/run/net/$1/device/device"
  echo "$4" >"/run/net/$1/carrier"
}
nic enP7s7 0x10ec 0x8127 1
nic enp1s0f0np0 0x15b3 0x1021 1
nic enP2p1s0f0np0 0x15b3 0x1021 1
nic enp1s0f1np1 0x15b3 0x1021 0
mount --bind /run/net /sys/class/net

mount -t tmpfs tmpfs /tmp
while read -r target; do
  case $target in /run* | /tmp | /dev* | /proc) ;; *) mount -o remount,bind,ro "$target" 2>/dev/null || true ;; esac
done < <(findmnt -rno TARGET)
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys

cat >/run/spark/sshd_config <<CONFIG
ListenAddress $address:$port
HostKey /run/spark/host_key
AuthorizedKeysFile /run/spark/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv PATH=/run/spark/bin:$python:/usr/sbin:/usr/bin:/sbin:/bin
CONFIG
export LD_LIBRARY_PATH=/run/spark/program/lib
caps=-all,+setuid,+setgid,+sys_chroot,+chown,+fowner,+dac_override,+dac_read_search,+kill
exec setpriv --bounding-set "$caps" --inh-caps -all /run/spark/program/sshd -D -e -f /run/spark/sshd_config
