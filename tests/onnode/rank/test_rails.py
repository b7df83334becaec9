"""Rails in real network namespaces: every fault is named with its cure, and nothing starts before it is mended."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.onnode.rank.ranks import Ranks

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip"), reason="makes network namespaces: needs root and iproute2"
)
RAILS = (("a", "net1", "rocep1s0f0v0", 100), ("b", "net2", "roceP2p1s0f0v0", 101))


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def gid_of(address: str) -> str:
    raw = "0" * 20 + "ffff" + socket.inet_aton(address).hex()
    return ":".join(raw[at : at + 4] for at in range(0, 32, 4))


class Fabric:
    """Two pods on two rails: veth ends on a bridge of their own for each rail, and what /sys says of RDMA."""

    def __init__(self, folder: Path, ranks: Ranks) -> None:
        self.folder, self.ranks = folder, ranks
        self.switch = f"slr{os.getpid()}s"
        self.pods = [f"slr{os.getpid()}p{n}" for n in (0, 1)]

    def make(self) -> None:
        for name in (self.switch, *self.pods):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for rail, interface, hca, subnet in RAILS:
            ip("-n", self.switch, "link", "add", f"br{rail}", "mtu", "9000", "type", "bridge")
            ip("-n", self.switch, "link", "set", f"br{rail}", "up")
            for number, pod in enumerate(self.pods):
                port = f"{rail}{number}"
                ip("-n", self.switch, "link", "add", port, "mtu", "9000", "type", "veth",
                   "peer", "name", interface, "netns", pod)  # fmt: skip
                ip("-n", self.switch, "link", "set", port, "master", f"br{rail}", "up")
                ip("-n", pod, "link", "set", interface, "mtu", "9000", "up")
                ip("-n", pod, "addr", "add", f"192.168.{subnet}.{11 + number}/24", "dev", interface)
                self.rdma(number, hca, f"192.168.{subnet}.{11 + number}")
        members = self.ranks.plan["members"]
        for number, member in enumerate(members):
            member["address"] = f"192.168.100.{11 + number}"
            member["rails"] = [
                {"name": r, "interface": i, "hca": h, "address": f"192.168.{s}.{11 + number}", "prefix": 24,
                 "mtu": 9000} for r, i, h, s in RAILS
            ]  # fmt: skip
            self.ranks.prefix[number] = ["ip", "netns", "exec", self.pods[number]]
        self.ranks.plan |= {"rdma": True}

    def rdma(self, number: int, hca: str, address: str) -> None:
        port = self.folder / f"sys{number}/infiniband/{hca}/ports/1"
        (port / "gids").mkdir(parents=True)
        (port / "gid_attrs/types").mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n")
        for index, (gid, kind) in enumerate([("fe80:" + "0:" * 6 + "1", "RoCE v2"), (gid_of(address), "RoCE v2")]):
            (port / f"gids/{index + 4}").write_text(gid)
            (port / f"gid_attrs/types/{index + 4}").write_text(kind)

    def start(self, *ranks: int) -> None:
        for rank in ranks:
            self.ranks.plan["sys"] = str(self.folder / f"sys{rank}")
            self.ranks.start(rank)

    def remove(self) -> None:
        for name in (self.switch, *self.pods):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    ranks = Ranks(tmp_path, 2)
    made = Fabric(tmp_path, ranks)
    try:
        made.make()
        yield made
    finally:
        ranks.end()
        made.remove()


def test_two_pods_on_two_rails_serve(fabric: Fabric) -> None:
    fabric.start(0, 1)
    fabric.ranks.wait(fabric.ranks.serving)
    assert "checked: rails: a net1 192.168.100.11 MTU 9000, b net2 192.168.101.11 MTU 9000" in fabric.ranks.log(0)


def faults(fabric: Fabric, rank: int = 0) -> list[str]:
    """What the rank in that namespace would say now."""
    plan: dict[str, Any] = {**fabric.ranks.plan, "sys": str(fabric.folder / f"sys{rank}")}
    code = (
        "import json,sys; from sparkloom.onnode.rank import rails; from sparkloom.onnode.rank.plan import GroupPlan; "
        f"print(json.dumps(rails.faults(GroupPlan.of(json.loads(sys.argv[1])), {rank})))"
    )
    done = subprocess.run(
        ["ip", "netns", "exec", fabric.pods[rank], sys.executable, "-c", code, json.dumps(plan)],
        env=fabric.ranks.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return list(json.loads(done.stdout))


def test_every_local_fault_is_named(fabric: Fabric) -> None:
    pod, device = fabric.pods[0], fabric.folder / "sys0/infiniband/roceP2p1s0f0v0"
    assert faults(fabric) == []
    ip("-n", pod, "link", "set", "net2", "mtu", "1500")
    assert faults(fabric) == [
        "rail b: net2 has MTU 1500, planned is 9000 (fabric.mtu in fabric.yml); "
        "run playbooks/fabric.yml, which says what this node lacks, then delete this pod"
    ]
    ip("-n", pod, "link", "set", "net2", "mtu", "9000")
    ip("-n", pod, "addr", "flush", "dev", "net2")
    assert "net2 has no IPv4 address, planned is 192.168.101.11/24; delete this pod" in faults(fabric)[0]
    ip("-n", pod, "addr", "add", "192.168.101.99/24", "dev", "net2")
    assert "net2 has 192.168.101.99/24, planned" in faults(fabric)[0]
    ip("-n", pod, "addr", "add", "192.168.101.11/24", "dev", "net2")
    assert faults(fabric) == [], "a second address does no harm"
    ip("-n", fabric.switch, "link", "set", "b0", "down")
    assert "net2 has no carrier" in faults(fabric)[0]
    ip("-n", fabric.switch, "link", "set", "b0", "up")
    (device / "ports/1/gid_attrs/types/5").write_text("IB/RoCE v1")
    assert "has no RoCE v2 GID of 192.168.101.11" in faults(fabric)[0]
    (device / "ports/1/state").write_text("1: DOWN")
    assert "its port is 1: DOWN, expected ACTIVE" in faults(fabric)[0]
    shutil.rmtree(device)
    assert "RDMA device roceP2p1s0f0v0 is not there (found: rocep1s0f0v0)" in faults(fabric)[0]
    ip("-n", pod, "link", "del", "net2")
    assert "net2 is not in this pod (here: lo, net1): a port that left the PCI bus" in faults(fabric)[0]


def test_a_local_fault_is_refused_by_name_and_goes_on_once_it_is_mended(fabric: Fabric) -> None:
    ranks = fabric.ranks
    ip("-n", fabric.pods[1], "addr", "flush", "dev", "net2")
    fabric.start(0, 1)
    assert "rail b: net2 has no IPv4 address" in ranks.until(1, "refused")["text"]
    assert "rank 1 on spark2 has not come" in ranks.until(0, "missing")["text"]
    assert ranks.log(1).count("refused:") == 1, "one line"
    assert "engine: started" not in ranks.log(0) + ranks.log(1)
    ip("-n", fabric.pods[1], "addr", "add", "192.168.101.12/24", "dev", "net2")
    ranks.wait(ranks.serving)


def test_a_pod_that_was_faster_than_its_node_sets_its_mtu_itself(fabric: Fabric) -> None:
    ip("-n", fabric.pods[1], "link", "set", "net2", "mtu", "1500")
    fabric.start(0, 1)
    fabric.ranks.wait(fabric.ranks.serving)
    assert "rails: rail b: net2 came with MTU 1500; set to 9000 here" in fabric.ranks.log(1)


def test_without_the_right_to_do_so_the_mtu_stays_and_is_named(fabric: Fabric) -> None:
    ip("-n", fabric.pods[1], "link", "set", "net2", "mtu", "1500")
    fabric.ranks.prefix[1] += ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
    fabric.start(0, 1)
    assert "rail b: net2 has MTU 1500, planned is 9000" in fabric.ranks.until(1, "refused")["text"]


def test_frames_lost_on_the_way_are_named_with_rail_and_peer(fabric: Fabric) -> None:
    """Both ends say 9000, what is between them does not."""
    for port in ("b0", "b1"):
        ip("-n", fabric.switch, "link", "set", port, "mtu", "1500")
    fabric.start(0, 1)
    frames = "small frames pass, frames of 9000 bytes do not"
    fabric.ranks.until(0, "missing", f"rail b to rank 1 on spark2 (192.168.101.12): {frames}")
    assert "engine: started" not in fabric.ranks.log(0) + fabric.ranks.log(1)


def test_a_rail_without_a_way_to_the_peer_is_named(fabric: Fabric) -> None:
    ip("-n", fabric.switch, "link", "set", "brb", "down")
    fabric.start(0, 1)
    # beside a busy machine's other work the peer itself may be what is missing first
    fabric.ranks.until(1, "missing", "rail b to rank 0 on spark1 (192.168.101.11): no answer")


def test_a_rail_that_breaks_while_the_engine_runs_is_named_within_seconds(fabric: Fabric) -> None:
    """On the old code the rank said `NCCL transport roce` until the engine itself gave up."""
    ranks = fabric.ranks
    fabric.start(0, 1)
    ranks.wait(ranks.serving)
    assert ranks.status(1)["rails"] == []
    ip("-n", fabric.switch, "link", "set", "b1", "down")
    ranks.wait(lambda: ranks.status(1)["rails"], 30)
    (fault,) = ranks.status(1)["rails"]
    assert fault.startswith("rail b: net2 has no carrier") and "rails: rail b: net2 has no carrier" in ranks.log(1)
    ip("-n", fabric.switch, "link", "set", "b1", "up")
    ranks.wait(lambda: ranks.status(1)["rails"] == [], 30)
    assert "rails: as planned again" in ranks.log(1) and ranks.serving()
