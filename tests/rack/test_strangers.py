"""Who reaches a rank while a model is served: over the rails (a peer, any pod, the LAN, the wire), over the cluster's
network, and whom an engine reaches from its pod.

Asked with the tables and without: a check that is green either way proves nothing. tests/security/test_rails.py asks
more in namespaces, without a rack.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from sparkloom.inputs import inventory as inventories
from sparkloom.launch import fabric, ports
from testbed.base import names
from testbed.base.shell import ok, out, run
from testbed.beds.rack import cluster, hub, inventory
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
# Any pod of the cluster's network that has no rail: its namespace on the node has no net1. Some have no way out by a
# policy of their own, as the node-exporter, so each is tried. Nodes without one end with 9.
IN_A_POD = f"""
ends=9
for ns in /run/netns/cni-*; do
  nsenter --net=$ns ip link show net1 >/dev/null 2>&1 && continue
  nsenter --net=$ns python3 -c "{CONNECTS}" && exit 0
  ends=1
done
exit $ends"""
EVERY_NAMESPACE = "for ns in /proc/self/ns/net /run/netns/cni-*; do nsenter --net=$ns {} 2>/dev/null; done; true"
TABLE = "inet sparkloom_rails"
REPAIR = "sparkloom-functions-repair"  # which would put them back, also from a run that began before its timer stopped
STILL = f"systemctl stop {REPAIR}.timer; while systemctl is-active {REPAIR} | grep -q activating; do sleep 0.2; done"
LOAD = f"python3 -B /usr/local/lib/sparkloom/rails-table.pyz; systemctl start {REPAIR}.timer"


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
        run(on(spark, STILL))
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


# --- the cluster's network, where the policy controller of K3s runs -------------------------------------------------

OPEN = """
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"""
# In the namespace of the pod that has this address.
AS_A_POD = f"""
for ns in /run/netns/cni-*; do
  nsenter --net=$ns ip -4 -o address show dev eth0 2>/dev/null | grep -q ' {{source}}/' &&
    exec nsenter --net=$ns python3 -c "{OPEN}" {{target}} {{port}}
done
exit 9"""


@dataclass(frozen=True)
class Places:
    """Addresses on the cluster's network; `node` is by whose namespaces a pod is found."""

    ranks: dict[int, str]
    dns: str
    router: str
    nodes: dict[str, str]

    @classmethod
    def read(cls) -> Places:
        listed = json.loads(cluster.kubectl("get", "pods", "-A", "-o", "json"))["items"]
        labelled = [(pod["metadata"].get("labels", {}), pod["status"].get("podIP", "")) for pod in listed]
        return cls(
            ranks={int(of["sparkloom/rank"]): address for of, address in labelled if "sparkloom/rank" in of},
            dns=next(address for of, address in labelled if of.get("k8s-app") == "kube-dns"),
            router=next(address for of, address in labelled if of.get("app.kubernetes.io/name") == "router"),
            nodes={spark: cluster.nodes()[container]["ip"] for spark, container in names.NODES.items()},
        )

    def ways(self) -> dict[str, tuple[str, str, int]]:
        """What is tried: from which pod, where to."""
        return {
            "a pod to rank 0's API": (self.dns, self.ranks[0], 30000),
            "a pod to rank 0's supervisor": (self.dns, self.ranks[0], ports.PROBES),
            "the router to rank 0's API": (self.router, self.ranks[0], 30000),
            "the router to rank 0's supervisor": (self.router, self.ranks[0], ports.PROBES),
            "an engine to DNS": (self.ranks[1], self.dns, 53),
            "an engine to another pod": (self.ranks[1], self.dns, 9153),
            "an engine to another rank's API": (self.ranks[1], self.ranks[0], 30000),
            "an engine to the API server": (self.ranks[1], "10.96.0.1", 443),
            "an engine to another node": (self.ranks[1], self.nodes["spark3"], 10250),
            "an engine to the LAN": (self.ranks[1], str(hub.gateway()), hub.PORT),
        }


def passes(places: Places) -> set[str]:
    """Which ways are open; a pod is on any of the nodes."""

    def open_(way: tuple[str, str, int]) -> bool:
        source, target, port = way
        script = AS_A_POD.format(source=source, target=target, port=port)
        return any(ok(on(spark, script)) for spark in names.NODES)

    with ThreadPoolExecutor(4) as pool:
        ways = places.ways()
        return {name for name, is_open in zip(ways, pool.map(open_, ways.values()), strict=True) if is_open}


def settles(places: Places, wanted: set[str]) -> set[str]:
    """The controller follows what is applied within moments; on a busy machine a few of them."""
    limit = time.monotonic() + 60
    while (now := passes(places)) != wanted and time.monotonic() < limit:
        time.sleep(1)
    return now


def test_an_engine_speaks_to_nobody_and_is_spoken_to_by_the_router(group: kills.ServedGroup) -> None:
    places = Places.read()
    closed = {name for name in places.ways() if name.startswith("the router") or name == "an engine to DNS"}
    assert settles(places, closed) == closed
    space = ("-n", "sparkloom")
    kept = json.loads(cluster.kubectl(*space, "get", "networkpolicy", "-o", "json"))
    cluster.kubectl(*space, "delete", "networkpolicy", "--all")
    try:
        assert settles(places, set(places.ways())) == set(places.ways())
    finally:
        for policy in kept["items"]:
            policy["metadata"] = {key: policy["metadata"][key] for key in ("name", "namespace", "labels")}
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=sparkloom", "-f", "-",
                        stdin=json.dumps(kept))  # fmt: skip
    assert settles(places, closed) == closed
