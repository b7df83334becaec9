"""`security_mode: device-plugin` on the rack: the same model serves, and what a privileged rank may do fails.

The verbs files come into the pods by what NVIDIA's container runtime is asked; here a hook of the nodes answers for it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import names
from testbed.beds.rack import cluster, inventory
from testbed.trials import kills
from tests.rack.running import run

pytestmark = [pytest.mark.rack, pytest.mark.slow]
ONLY = "0000000000084000"  # IPC_LOCK, SYS_PTRACE
# What somebody tries who took an engine over. Nothing of it stays where it succeeds.
ATTACKS = """
import ctypes, fcntl, json, os, socket, stat, struct
def raw():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close()
def namespace():
    assert ctypes.CDLL(None).unshare(0x00020000) == 0
def disk():
    os.mknod('/tmp/disk', stat.S_IFBLK | 0o600, os.makedev(254, 0))
    os.unlink('/tmp/disk')
def rail():
    plug = socket.socket()
    name = struct.pack('16si', b'net1', 0)
    size = struct.unpack('16si', fcntl.ioctl(plug, 0x8921, name))[1]
    fcntl.ioctl(plug, 0x8922, struct.pack('16si', b'net1', size))
def setting():
    with open('/proc/sys/net/ipv4/conf/net1/arp_ignore', 'r+') as file:
        file.write('1')
def weights():
    open('/models/left-behind', 'w').close()
    os.unlink('/models/left-behind')
def sealed():
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mount(None, b'/sealed', None, 0x1020, None) == 0  # MS_REMOUNT, MS_BIND: writable
    libc.mount(None, b'/sealed', None, 0x1021, None)
done = []
for attack in (namespace, raw, disk, rail, setting, weights, sealed):
    try:
        attack()
        done.append(attack.__name__)
    except (OSError, AssertionError):
        pass
print(json.dumps(done))
"""


def inside(pod: str, *words: str) -> str:
    return cluster.kubectl("-n", "sparkloom", "exec", pod, "--", *words)


def attacked(group: kills.ServedGroup) -> set[str]:
    """What succeeded in any pod."""
    told = (json.loads(inside(pod.metadata.name, "python3", "-c", ATTACKS)) for pod in group.pods())
    return {attack for each in told for attack in each}


def planted_is_gone(group: kills.ServedGroup, rank: int) -> None:
    """What an engine left is not there for the next pod; what the first start compiled is."""
    assert inside(group.pods()[rank].metadata.name, "ls", "-R", "/sealed/current/").count("kernel.cubin") == 1
    inside(group.pods()[rank].metadata.name, "touch", "/cache/triton/planted.so")
    again = kills.once(group, "pod", rank)
    assert again.good, again
    new = group.pods()[rank].metadata.name
    assert inside(new, "ls", "/cache/triton").split() == ["kernel.cubin"]
    assert "kernels: as sealed" in cluster.kubectl("-n", "sparkloom", "logs", new)


@pytest.fixture
def site() -> Iterator[Path]:
    """The rack's inventory with the other mode, at a place from which its paths lead to the same files."""
    copied = names.STATE.parent / "unprivileged"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(inventory.path(), copied)
    chosen = copied / "group_vars/all/cluster.yml"
    chosen.write_text(chosen.read_text().replace("security_mode: privileged", "security_mode: device-plugin"))
    yield copied
    shutil.rmtree(copied)


def test_a_rank_without_privileges_serves_and_may_do_nothing_else(group: kills.ServedGroup, site: Path) -> None:
    assert attacked(group) >= {"namespace", "raw", "disk", "rail", "setting", "sealed"}  # privileged: root on its node
    done = run("ansible-playbook", "-i", str(site), "playbooks/serve.yml", "-e", "model_serving_replace=true")
    assert done.returncode == 0 and "4 ranks, roce" in done.stdout, done.stdout[-6000:]
    pods = group.pods()
    assert len(pods) == len(names.NODES)
    for pod in pods:
        assert "uverbs0" in inside(pod.metadata.name, "ls", "/dev/infiniband")
        status = dict(line.split(":\t", 1) for line in inside(pod.metadata.name, "cat", "/proc/1/status").splitlines())
        assert status["CapEff"].strip() == status["CapBnd"].strip() == ONLY
        assert status["NoNewPrivs"].strip() == "1"
    assert attacked(group) == set()
    planted_is_gone(group, 1)
    rank0 = next(pod for pod in pods if pod.metadata.labels["sparkloom/rank"] == "0")
    assert inside(rank0.metadata.name, "cat", "/proc/sys/net/ipv4/conf/net1/arp_announce").strip() == "2"
