"""Who reaches a rank over the rails while a model is served: a peer, any pod, the LAN, the wire.

Asked with the tables and without: a check that is green either way proves nothing. tests/security/test_rails.py asks
more in namespaces, without a rack.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sparkloom.inputs import inventory as inventories
from sparkloom.launch import fabric, ports
from testbed.base import names
from testbed.base.shell import ok, out, run
from testbed.beds.rack import inventory
from testbed.trials import kills

pytestmark = [pytest.mark.rack, pytest.mark.slow]
CLUSTER = inventories.load(inventory.path())
PLAN = fabric.plan(CLUSTER)
RANK0 = PLAN.of("spark1", PLAN.serving_vf)[0].address
STRANGER = "192.168.100.99"
# Who is hung up on was heard.
CONNECTS = f"""
import contextlib, socket
with contextlib.suppress(ConnectionResetError):
    socket.create_connection(('{RANK0}', {ports.CONTROL}), 2)"""
# A pod of the cluster's network that has no rail: its namespace on the node has no net1. Nodes without one end with 9.
IN_A_POD = f"""
for ns in /run/netns/cni-*; do
  nsenter --net=$ns ip link show net1 >/dev/null 2>&1 || exec nsenter --net=$ns python3 -c "{CONNECTS}"
done
exit 9"""
EVERY_NAMESPACE = "for ns in /proc/self/ns/net /run/netns/cni-*; do nsenter --net=$ns {} 2>/dev/null; done; true"
TABLE = "inet sparkloom_rails"
TIMER = "sparkloom-functions-repair.timer"  # which would put them back
LOAD = f"python3 -B /usr/local/lib/sparkloom/rails-table.pyz; systemctl start {TIMER}"


def on(spark: str, script: str) -> list[str]:
    return ["docker", "exec", names.NODES[spark], "bash", "-c", script]


def got_in() -> dict[str, bool]:
    wire = ["ip", "netns", "exec", names.FABRIC_NETNS, "python3", "-c", CONNECTS]
    pods = {spark: run(on(spark, IN_A_POD), check=False).returncode for spark in names.NODES}
    assert set(pods.values()) != {9}, "no node has a pod that could ask"
    return {
        "a peer": ok(on("spark2", f'python3 -c "{CONNECTS}"')),
        "a pod": 0 in pods.values(),
        "the LAN": ok(["python3", "-c", CONNECTS]),
        "the wire": ok(wire),
    }


@pytest.fixture
def ways(group: kills.ServedGroup) -> Iterator[None]:
    """What a stranger needs of his own: an address on the wire, a route from the LAN by the node."""
    wire = ["ip", "-n", names.FABRIC_NETNS, "address"]
    address = out(on("spark1", "ip -4 -o address show eth0 | tr -s ' ' | cut -d' ' -f4 | cut -d/ -f1")).strip()
    run([*wire, "add", f"{STRANGER}/24", "dev", "rail-a"])
    run(["ip", "route", "add", RANK0, "via", address])
    yield
    run([*wire, "delete", f"{STRANGER}/24", "dev", "rail-a"])
    run(["ip", "route", "delete", RANK0])


@contextmanager
def without_tables() -> Iterator[None]:
    for spark in names.NODES:
        run(on(spark, f"systemctl stop {TIMER}"))
        run(on(spark, EVERY_NAMESPACE.format(f"nft delete table {TABLE}")))
    try:
        yield
    finally:
        for spark in names.NODES:
            run(on(spark, LOAD))


def test_a_rank_is_reached_by_its_peers_and_nobody_else(ways: None) -> None:
    with without_tables():
        before = got_in()
    now = got_in()
    assert {who for who, entered in now.items() if entered} == {"a peer"}, (before, now)
    # The LAN's packets end on a rack before they arrive, for want of a way back: test_rails.py has one.
    assert before["a peer"] and before["the wire"] and before["a pod"], before
