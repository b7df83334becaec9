"""A disk that fills while a model is served: a real kubelet with the arguments that role k3s gives, and with K3s' own.

The file system below /var/lib of one Spark, with kubelet's and containerd's folders, is a small one of its own. Weights
stay where they are: copied ones are others, and no rank would take them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.base import names
from testbed.base.shell import out
from testbed.base.shell import run as sh
from testbed.beds.rack import cluster
from testbed.trials import kills
from tests.later import LATER
from tests.places import REPO
from tests.rack.bare_cluster import patiently
from tests.rack.running import run

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]
SPARK = names.NODES["spark4"]
OURS: list[str] = yaml.safe_load((REPO / "roles/k3s/defaults/main.yml").read_text())["k3s_kubelet_args"]
# What K3s gives a kubelet that is told nothing else (pkg/daemons/agent/agent.go).
K3S = ["eviction-hard=imagefs.available<5%,nodefs.available<5%",
       "eviction-minimum-reclaim=imagefs.available=10%,nodefs.available=10%"]  # fmt: skip
HOLDER, SIZE = "/var/lib/docker", "6G"
FILL = f"{HOLDER}/of-somebody"
TOLD = "/run/sparkloom/metrics/sparkloom.prom"
VOLUME = '{{range .Mounts}}{{if eq .Destination "/var"}}{{.Source}}{{end}}{{end}}'


def power(verb: str) -> None:
    done = run("python", "-m", "testbed", "rack", "node", "spark4", verb)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def small(group: kills.ServedGroup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The machine is off while its disk is changed."""
    folder, place = tmp_path_factory.mktemp("disk"), Path(out(["docker", "inspect", "-f", VOLUME, SPARK])) / "lib"
    weights = place / "sparkloom"
    sh(["truncate", "-s", SIZE, folder / "image"])
    (folder / "weights").mkdir()
    power("stop")
    sh(["mount", "--bind", weights, folder / "weights"])
    sh(["mkfs.ext4", "-q", "-m", "0", "-d", place, folder / "image"])
    sh(["mount", "-o", "loop", folder / "image", place])
    sh(["mount", "--bind", folder / "weights", weights])
    try:
        power("start")
        patiently(lambda: group.serves(0), 240, "serving from the small disk")
        yield
    finally:
        power("stop")
        sh(["umount", weights, place, folder / "weights"])
        power("start")


def kubelet(arguments: list[str]) -> None:
    """As K3s hands them on: each becomes a flag."""
    words = " ".join(f"--{argument}" for argument in arguments)
    kept = "KUBELET_EXTRA_ARGS=--runtime-cgroups=/system.slice/containerd.service"
    cluster.node_sh(SPARK, f"echo '{kept} {words}' > /etc/default/kubelet; systemctl restart kubelet")
    cluster.node_sh(SPARK, cluster.KUBELET_ANSWERS)


def fill() -> None:
    """1 % is left."""
    free = int(cluster.node_sh(SPARK, "df --output=avail -B1 /var/lib | tail -1"))
    cluster.node_sh(SPARK, f"mkdir -p {HOLDER}; fallocate -l {free * 99 // 100} {FILL}")
    cluster.node_sh(SPARK, "systemctl restart sparkloom-host-metrics")  # else it looks again within ten minutes


def empty() -> None:
    cluster.node_sh(SPARK, f"rm -f {FILL}")


def rank(group: kills.ServedGroup) -> Any:
    return next(pod for pod in group.pods() if pod.spec.node_name == SPARK)


def pressure() -> str:
    conditions = json.loads(cluster.kubectl("get", "node", SPARK, "-o", "json"))["status"]["conditions"]
    return str(next(each["status"] for each in conditions if each["type"] == "DiskPressure"))


def evicted(what: str = "") -> str:
    """What the kubelet said last of a pod of ours that it ended: of any, or of this one."""
    listed = cluster.kubectl("-n", "sparkloom", "get", "events", "--field-selector=reason=Evicted", "-o", "json")
    events = [(event["involvedObject"]["name"], event["message"]) for event in json.loads(listed)["items"]]
    return next((f"{name}: {message}" for name, message in events if what in name), "")


def test_our_settings_leave_the_engine_alone_and_the_holder_is_named(group: kills.ServedGroup, small: None) -> None:
    kubelet(OURS)
    patiently(lambda: group.serves(0), 120, "serving")
    before, epoch = rank(group), group.epoch()
    fill()
    time.sleep(60)  # the kubelet looks every ten seconds
    told = cluster.node_sh(SPARK, f"cat {TOLD}")
    after = rank(group)
    assert pressure() == "False" and not evicted()
    assert after.metadata.uid == before.metadata.uid and group.epoch() == epoch and group.serves(0)
    assert group.token()
    free = re.search(r'sparkloom_host_disk_free_bytes{folder="/var/lib"} (\S+)', told)
    holders = re.findall(r'sparkloom_host_disk_held_bytes{folder="/var/lib",holder="(\S+)"} (\S+)', told)
    assert free and float(free[1]) < 0.02 * 6 * 2**30 and holders and holders[0][0] == HOLDER, told
    empty()


def test_k3s_own_settings_would_have_ended_it(group: kills.ServedGroup, small: None) -> None:
    before = rank(group)
    kubelet(K3S)
    fill()
    try:
        told = patiently(lambda: evicted(before.metadata.name), 180, "the engine to be evicted")
        print(told)
        assert "low on resource: ephemeral-storage" in told and pressure() == "True" and not group.serves(0)
    finally:
        empty()
        kubelet(OURS)
    patiently(lambda: group.serves(0), 300, "serving again")
