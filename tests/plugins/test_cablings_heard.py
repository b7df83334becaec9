"""Cablings that stand in network namespaces, heard by the unmodified modules and judged as the playbook judges them.

Against paper (test_cablings.py) this has the frames, the carriers and each port's own small switch.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sparkloom.inputs import inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.site.cabling import look, shape
from testbed.beds.cabling import INNER, OUTER, PORTS, Bench, halves
from tests.namespaces import needs_namespaces
from tests.places import REPO
from tests.plugins.test_listen import lldp_frame

pytestmark = needs_namespaces
SECONDS = 1.0  # in which each port speaks four times
MODULES = """
import json, sys
from sparkloom.onnode.tasks.main import answer

for line in sys.stdin:
    name, args = json.loads(line)
    print(json.dumps(answer({"do": name, "params": args}, check_mode=False)), flush=True)
"""
SAY_LLDP = """
import socket, sys, time
made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
made.bind((sys.argv[1], 0))
for _ in range(8):
    made.send(bytes.fromhex(sys.argv[2]))
    time.sleep(0.25)
"""
ONE, TWO, THREE, FOUR = (f"spark{number}" for number in (1, 2, 3, 4))
ALL = (ONE, TWO, THREE, FOUR)


def inner(*nodes: str) -> list[tuple[str, int]]:
    return [(node, INNER) for node in nodes]


def ring(bench: Bench, nodes: tuple[str, ...], cables: int) -> None:
    """As NVIDIA's guide cables it: inner cage to the next one's outer."""
    for node, following in list(zip(nodes, (*nodes[1:], nodes[0]), strict=True))[:cables]:
        bench.cable((node, INNER), (following, OUTER))


def one_switch(bench: Bench) -> None:
    bench.switch(*inner(*ALL))


def hundred(bench: Bench) -> None:
    bench.switch(*inner(*ALL))
    for cage in inner(*ALL):
        bench.speed(cage, 100)


def two_switches(bench: Bench) -> None:
    bench.switch(*inner(ONE, TWO))
    bench.switch(*inner(THREE, FOUR))


def another_vlan(bench: Bench) -> None:
    bench.switch(*inner(*ALL[:3]))
    bench.switch(*inner(FOUR))


def two_cables(bench: Bench) -> None:
    bench.cable((ONE, INNER), (TWO, INNER))
    bench.cable((ONE, OUTER), (TWO, OUTER))


def slow_port(bench: Bench) -> None:
    bench.switch(*inner(*ALL))
    bench.speed((TWO, INNER), 50)


@dataclass(frozen=True)
class Case:
    """`findings`: severity, node and check of each; `names`: what the text must have in it."""

    nodes: tuple[str, ...]
    build: Callable[[Bench], None]
    kind: str
    findings: list[tuple[str, str, str]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    gbit: int = 200


CABLINGS = {
    "switch": Case(ALL, one_switch, "a switch"),
    "pair": Case(ALL[:2], lambda b: b.cable((ONE, INNER), (TWO, INNER)), "one cable between two"),
    "pair, crossed": Case(
        ALL[:2], lambda b: b.cable((ONE, INNER), (TWO, OUTER)), "one cable between two",
        [("warning", TWO, "cage")], ("the cable is in the outer cage",),
    ),
    "pair, two cables": Case(
        ALL[:2], two_cables, "one cable between two", [("info", ONE, "cage"), ("info", TWO, "cage")],
        ("a second cable, in the outer cage",),
    ),
    "ring of 3": Case(
        ALL[:3], lambda b: ring(b, ALL[:3], 3), "a ring of 3", [("info", ONE, "ring")],
        ("spark2's inner cage - spark3's outer cage",),
    ),
    "line of 3": Case(
        ALL[:3], lambda b: ring(b, ALL[:3], 2), "a line of 3",
        [("error", THREE, "cage"), ("error", ONE, "cable")], ("spark3's inner cage should go to spark1's outer cage",),
    ),
    "ring of 4": Case(ALL, lambda b: ring(b, ALL, 4), "a ring of 4", [("error", ONE, "ring")]),
    "two of a ring of 3, in an inventory of their own": Case(
        ALL[1:3], lambda b: ring(b, ALL[:3], 3), "one cable between two",
        [("warning", TWO, "cable"), ("warning", THREE, "cable"), ("warning", THREE, "cage")],
        ("a link in its outer cage, with nobody of this inventory behind it",),
    ),
    "wrong cage": Case(
        ALL, lambda b: b.switch(*inner(ONE, TWO, FOUR), (THREE, OUTER)), "a switch", [("warning", THREE, "cage")],
        ("the cable is in the outer cage; expected the inner cage, as on spark1, spark2, spark4",),
    ),
    "mixed cages": Case(
        ALL, lambda b: b.switch((ONE, OUTER), (TWO, INNER), (THREE, OUTER), (FOUR, OUTER)), "a switch",
        [("warning", TWO, "cage")], ("the cable is in the inner cage",),
    ),
    "one cable missing": Case(
        ALL, lambda b: b.switch(*inner(*ALL[:3])), "a switch", [("error", FOUR, "cable")],
        ("no link in inner cage or outer cage",),
    ),
    "another VLAN": Case(
        ALL, another_vlan, "a switch", [("error", FOUR, "cable")],
        ("a link in its inner cage, with nobody of this inventory behind it",),
    ),
    "two switches": Case(
        ALL, two_switches, "islands", [("error", ONE, "fabric")], ("spark1 + spark2; spark3 + spark4",),
    ),
    "100G": Case(ALL, hundred, "a switch", gbit=100),
    "one slow port": Case(ALL, slow_port, "a switch", [("error", TWO, "speed")], ("the inner cage at 50 Gb/s",)),
}  # fmt: skip


Answers = dict[str, dict[str, Any]]


class Sparks:
    """Four Sparks on a bench, and on each a Python that runs our modules one after the other."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.running = bench, {}
        environ = {**os.environ, "PYTHONPATH": f"{REPO}:{REPO}/scripts"}
        for node in bench.namespaces:
            self.running[node] = subprocess.Popen(
                [*bench.inside(node), sys.executable, "-c", MODULES], cwd=REPO, env=environ,
                text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip

    def ask(self, module: str, args: dict[str, dict[str, Any]]) -> None:
        """All at once; `args` by node."""
        for node, values in args.items():
            print(json.dumps([module, values]), file=self.running[node].stdin, flush=True)

    def told(self, nodes: Iterable[str]) -> Answers:
        return {node: json.loads(self.running[node].stdout.readline()) for node in nodes}  # type: ignore[union-attr]

    def listen(self, *nodes: str, seconds: float = SECONDS, **sites: str) -> None:
        args = {"ports": PORTS, "seconds": seconds}
        own = {
            node: {"node": node, "site": sites.get(node, "home"), "sysfs_root": str(self.bench.sysfs(node))}
            for node in nodes
        }
        self.ask("listen", {node: {**args, **values} for node, values in own.items()})

    def facts(self, nodes: tuple[str, ...], **sites: str) -> Answers:
        """What the playbook asks, in its order, put together as it does."""
        self.ask("machine", {node: {"sysfs_root": str(self.bench.sysfs(node))} for node in nodes})
        machines = self.told(nodes)
        self.listen(*nodes, **sites)
        return look.merge(machines, self.told(nodes))

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sparks]:
    with (
        contextlib.closing(Bench(ALL, tmp_path_factory.mktemp("bench"))) as bench,
        contextlib.closing(Sparks(bench)) as made,
    ):
        yield made


@pytest.fixture
def sparks(four: Sparks) -> Sparks:
    four.bench.unplug()
    return four


def site(nodes: tuple[str, ...]) -> Cluster:
    shipped = inventory.load(REPO / "inventories/gb10")
    return shipped.model_copy(update={"nodes": [node for node in shipped.nodes if node.name in nodes]})


@pytest.mark.parametrize("name", CABLINGS)
def test_what_is_cabled_is_what_is_found(name: str, sparks: Sparks) -> None:
    case = CABLINGS[name]
    case.build(sparks.bench)
    cluster = site(case.nodes)
    found = look.judge(cluster, sparks.facts(case.nodes))
    text = look.text(cluster, found)
    assert (found.kind, said(found)) == (case.kind, case.findings), text
    assert found.rail_gbit == case.gbit
    for words in case.names:
        assert words in text


def said(found: shape.Found) -> list[tuple[str, str, str]]:
    return [(finding.severity, finding.where, finding.rule) for finding in found.findings]


def test_a_port_that_is_off_is_heard_and_off_again(sparks: Sparks) -> None:
    sparks.bench.switch(*inner(ONE, TWO, THREE))
    sparks.bench.switch_off(TWO, INNER)
    sparks.listen(ONE, TWO, THREE)
    told = sparks.told([ONE, TWO, THREE])
    assert told[TWO]["woken"] == [half.netdev for half in halves(INNER)] and not told[TWO]["changed"]
    assert told[ONE]["woken"] == []
    assert TWO in {row["node"] for row in told[ONE]["heard"]} and ONE in {row["node"] for row in told[TWO]["heard"]}
    words = [*sparks.bench.inside(TWO), "ip", "-json", "link", "show", PORTS[0]]
    (link,) = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    assert "UP" not in link["flags"]


def test_another_site_on_the_same_switch_is_not_heard(sparks: Sparks) -> None:
    sparks.bench.switch(*inner(ONE, TWO, THREE))
    told = sparks.facts((ONE, TWO, THREE), spark3="upstairs")
    assert {row["node"] for row in told[ONE]["heard"]} == {ONE, TWO}


def test_a_switch_that_says_its_name_is_understood(sparks: Sparks) -> None:
    sparks.bench.switch(*inner(ONE))
    sparks.listen(ONE, seconds=3)
    words = [*sparks.bench.behind, sys.executable, "-c", SAY_LLDP, sparks.bench.end((ONE, INNER))]
    words.append(lldp_frame(b"rack-switch").hex())
    subprocess.run(words, check=True)
    (heard,) = sparks.told([ONE])[ONE]["lldp"]
    assert heard == {
        "interface": PORTS[0],
        "chassis": "48:a9:8a:00:00:01",
        "port": "qsfp1",
        "system": "rack-switch",
    }
