"""Made-up cablings, told as the nodes would tell them: each is recognised, and the cable that is wrong is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import inventory
from sparkloom.site.cabling import declare, look, shape
from testbed.beds.cabling import INNER, OUTER, halves
from tests.places import REPO

Cable = tuple[tuple[str, int], ...]  # the cages on one wire: (node, cage)
NAMES = {cage: tuple(half.netdev for half in halves(cage)) for cage in (INNER, OUTER)}
FOUR = ["spark1", "spark2", "spark3", "spark4"]


def mac(node: str, cage: int, half: int) -> str:
    return f"4c:bb:47:00:{node[-1]}{cage}:0{half}"


def port(node: str, cage: int, half: int) -> dict[str, Any]:
    return {
        "pci": f"000{2 * half}:01:00.{cage}", "interface": NAMES[cage][half], "vendor": "0x15b3", "device": "0x1021",
        "up": True, "carrier": False, "speed": -1, "mac": mac(node, cage, half), "master": "", "total_vfs": 16,
    }  # fmt: skip


def facts(nodes: list[str], *cables: Cable, gbit: int = 200, deaf: bool = False) -> dict[str, dict[str, Any]]:
    """What every node reads when these cables are in. `deaf`: no probe came through, only MACs are known."""
    told: dict[str, dict[str, Any]] = {
        node: {
            "ports": [port(node, cage, half) for cage in (INNER, OUTER) for half in (0, 1)],
            "heard": [], "neighbours": [], "lldp": [],
        }
        for node in nodes
    }  # fmt: skip
    for cable in cables:
        for node, cage in cable:
            if node not in told:
                continue
            for half in (0, 1):
                mine = at(told, node, NAMES[cage][half])
                mine.update(carrier=True, speed=gbit * 1000)
            others = [(other, its, half) for other, its in cable if other != node for half in (0, 1)]
            heard = [{"interface": NAMES[cage][0], "node": o, "port": NAMES[its][h]} for o, its, h in others]
            known = [{"interface": NAMES[cage][0], "mac": mac(*other).upper()} for other in others]
            told[node]["neighbours" if deaf else "heard"] += known if deaf else heard
            # the port's own halves hear each other too
            told[node]["heard"].append({"interface": NAMES[cage][0], "node": node, "port": NAMES[cage][1]})
    return told


def at(told: dict[str, dict[str, Any]], node: str, interface: str) -> dict[str, Any]:
    return next(p for p in told[node]["ports"] if p["interface"] == interface)


def judge(nodes: list[str], told: dict[str, dict[str, Any]]) -> shape.Found:
    return shape.judge(nodes, told, "enP7s7")


def said(found: shape.Found) -> list[tuple[str, str, str]]:
    return [(finding.severity, finding.where, finding.rule) for finding in found.findings]


def switch(*members: tuple[str, int]) -> Cable:
    return tuple(members)


def inner(*nodes: str) -> Cable:
    return tuple((node, INNER) for node in nodes)


def ring(nodes: list[str]) -> list[Cable]:
    """As NVIDIA's guide cables it: inner cage to the next one's outer."""
    return [((node, INNER), (nodes[(number + 1) % len(nodes)], OUTER)) for number, node in enumerate(nodes)]


CABLINGS: dict[str, tuple[list[str], list[Cable], str, list[tuple[str, str, str]]]] = {
    "switch": (FOUR, [inner(*FOUR)], "a switch", []),
    "switch, all outer": (FOUR, [tuple((node, OUTER) for node in FOUR)], "a switch", []),
    "pair": (FOUR[:2], [inner(*FOUR[:2])], "one cable between two", []),
    "pair, crossed": (
        FOUR[:2], [(("spark1", INNER), ("spark2", OUTER))], "one cable between two", [("warning", "spark2", "cage")],
    ),
    "pair, two cables": (
        FOUR[:2], [inner(*FOUR[:2]), (("spark1", OUTER), ("spark2", OUTER))], "one cable between two",
        [("info", "spark1", "cage"), ("info", "spark2", "cage")],
    ),
    "wrong cage": (
        FOUR, [switch(("spark1", 0), ("spark2", 0), ("spark3", 1), ("spark4", 0))], "a switch",
        [("warning", "spark3", "cage")],
    ),
    "mixed cages": (
        FOUR, [switch(("spark1", 1), ("spark2", 0), ("spark3", 1), ("spark4", 1))], "a switch",
        [("warning", "spark2", "cage")],
    ),
    "one cable missing": (FOUR, [inner(*FOUR[:3])], "a switch", [("error", "spark4", "cable")]),
    "other VLAN": (FOUR, [inner(*FOUR[:3]), inner("spark4")], "a switch", [("error", "spark4", "cable")]),
    "two switches": (FOUR, [inner(*FOUR[:2]), inner(*FOUR[2:])], "islands", [("error", "spark1", "fabric")]),
    "one Spark in two networks": (
        [*FOUR[:3], "spark4", "spark5"],
        [inner("spark1", "spark2", "spark3"), switch(("spark3", 1), ("spark4", 0), ("spark5", 0))],
        "islands", [("error", "spark1", "fabric")],
    ),
    "ring of 3": (FOUR[:3], ring(FOUR[:3]), "a ring of 3", [("info", "spark1", "ring")]),
    "ring of 3, the other way round": (
        FOUR[:3], ring(["spark1", "spark3", "spark2"]), "a ring of 3", [("info", "spark1", "ring")],
    ),
    "ring of 3, and one without a cable": (
        FOUR, ring(FOUR[:3]), "a ring of 3", [("error", "spark4", "cable"), ("error", "spark1", "ring")],
    ),
    "ring of 3, a cage wrong": (
        FOUR[:3],
        [(("spark1", 0), ("spark2", 0)), (("spark2", 1), ("spark3", 1)), (("spark3", 0), ("spark1", 1))],
        "a ring of 3", [("error", "spark1", "cage"), ("error", "spark2", "cage")],
    ),
    "ring of 4": (FOUR, ring(FOUR), "a ring of 4", [("error", "spark1", "ring")]),
    "line of 3": (
        FOUR[:3], ring(FOUR[:3])[:2], "a line of 3", [("error", "spark3", "cage"), ("error", "spark1", "cable")],
    ),
    "line of 4": (FOUR, ring(FOUR)[:3], "a line of 4", [("error", "spark1", "cable")]),
    "a stranger at the other end": (
        FOUR[:2], [inner(*FOUR[:2]), (("spark2", OUTER), ("box", INNER))], "one cable between two",
        [("warning", "spark2", "cable")],
    ),
    "nothing": (FOUR[:2], [], "no fabric", [("error", "spark1", "cable"), ("error", "spark2", "cable")]),
    "one Spark": (FOUR[:1], [], "one Spark", []),
}  # fmt: skip


@pytest.mark.parametrize("deaf", [False, True], ids=["heard", "by MAC"])
@pytest.mark.parametrize("name", CABLINGS)
def test_each_cabling_is_recognised_and_its_fault_named(name: str, deaf: bool) -> None:
    nodes, cables, kind, findings = CABLINGS[name]
    found = judge(nodes, facts(nodes, *cables, deaf=deaf))
    assert (found.kind, said(found)) == (kind, findings)
    assert bool(found.used) == (kind in ("a switch", "one cable between two") or bool(found.ring))
    assert bool(found.ring) == (name in ("ring of 3", "ring of 3, the other way round"))
    assert all(finding.message and finding.expected and finding.fix for finding in found.findings)


def test_half_a_word_joins_two_cages() -> None:
    told = facts(FOUR[:2], inner(*FOUR[:2]))
    told["spark1"]["heard"] = []
    assert judge(FOUR[:2], told).kind == "one cable between two"


def test_100_gbit_is_a_speed_and_13_a_fault() -> None:
    found = judge(FOUR, facts(FOUR, inner(*FOUR), gbit=100))
    assert (found.rail_gbit, found.findings) == (100, [])
    told = facts(FOUR, inner(*FOUR))
    at(told, "spark2", NAMES[INNER][1]).update(speed=13_000)
    found = judge(FOUR, told)
    assert found.rail_gbit == 200 and said(found) == [("error", "spark2", "speed")]
    assert "13 Gb/s" in found.findings[0].message


def test_a_half_that_is_dead_or_gone_is_named() -> None:
    told = facts(FOUR[:2], inner(*FOUR[:2]))
    at(told, "spark1", NAMES[INNER][1]).update(carrier=False, speed=-1)
    told["spark2"]["ports"] = [p for p in told["spark2"]["ports"] if p["interface"] != NAMES[INNER][1]]
    assert said(judge(FOUR[:2], told)) == [("error", "spark1", "halves"), ("warning", "spark2", "halves")]
    del told["spark2"]["ports"][0]  # the first half of the inner cage, and with it the whole cage
    assert said(judge(FOUR[:2], told))[0] == ("error", "spark2", "cable")


def test_switches_that_name_themselves_are_named() -> None:
    told = facts(FOUR, inner(*FOUR))
    for node, system in zip(FOUR, ("left", "left", "right", "right"), strict=True):
        told[node]["lldp"] = [{"interface": NAMES[INNER][0], "chassis": "aa", "system": system, "port": "qsfp1"}]
    (finding,) = judge(FOUR, told).findings
    assert (finding.severity, finding.rule) == ("warning", "switch") and "left and right" in finding.message
    pair = facts(FOUR[:2], inner(*FOUR[:2]))
    pair["spark1"]["lldp"] = [{"interface": NAMES[INNER][0], "chassis": "aa", "system": "left", "port": "q"}]
    assert judge(FOUR[:2], pair).kind == "a switch"


def test_a_node_that_was_not_read_is_said() -> None:
    found = judge(FOUR, facts(FOUR[:3], inner(*FOUR[:3])))
    assert said(found) == [("error", "spark4", "connection")] and found.kind == "a switch"


def test_the_cable_that_would_close_a_ring_is_named() -> None:
    closing, three = judge(FOUR[:3], facts(FOUR[:3], *ring(FOUR[:3])[:2])).findings
    assert closing.message == "spark3's inner cage has no link, spark1's outer cage has no link"
    assert closing.fix == "spark3's inner cage should go to spark1's outer cage" and "two of them" in three.fix


def parted(found: shape.Found) -> list[list[tuple[str, ...]]]:
    return [[part.nodes for part in way] for way in found.splits]


def test_a_ring_of_three_is_served_along_its_cables() -> None:
    """Red before: refused, "Not served by this release"."""
    found = judge(FOUR[:3], facts(FOUR[:3], *ring(FOUR[:3])))
    (told,) = found.findings
    assert told.message == "a ring of 3 without a switch: spark1 - spark2 - spark3 - spark1"
    assert (told.severity, found.ring, found.splits) == ("info", ("spark1", "spark2", "spark3"), [])
    assert "NCCL 2.30.7" in told.expected and "engine.carries: [nccl-2.30.7]" in told.fix
    turned = judge(FOUR[:3], facts(FOUR[:3], *ring(["spark1", "spark3", "spark2"])))
    assert turned.ring == ("spark1", "spark3", "spark2")


def test_a_ring_of_three_with_a_cable_in_the_wrong_cage_says_what_to_swap() -> None:
    nodes, cables, _, _ = CABLINGS["ring of 3, a cage wrong"]
    found = judge(nodes, facts(nodes, *cables))
    assert "spark1's inner cage goes to spark2's inner cage" in found.findings[0].message
    assert [finding.fix for finding in found.findings] == [
        "spark1's inner cage should go to spark2's outer cage", "spark2's inner cage should go to spark3's outer cage",
    ]  # fmt: skip
    assert parted(found) == [
        [("spark1", "spark2"), ("spark3",)], [("spark1", "spark3"), ("spark2",)], [("spark2", "spark3"), ("spark1",)],
    ]  # fmt: skip


def test_a_ring_of_three_beside_a_spark_without_a_cable_has_three_ways_out() -> None:
    found = judge(FOUR, facts(FOUR, *ring(FOUR[:3])))
    fix = found.findings[1].fix
    first, second, third = fix.split(" ways out: ")[1].split("; (")
    assert "fabric.ring" in fix and "a switch" in first and "an inventory of its own" in third
    assert "(spark1 + spark2; or spark1 + spark3; or spark2 + spark3)" in second and "left out of hosts.yml" in second


def test_a_ring_of_four_says_what_would_be_relayed_and_which_pairs_there_are() -> None:
    """Red before: "pairs in inventories of their own", without which."""
    found = judge(FOUR, facts(FOUR, *ring(FOUR)))
    (error,) = found.findings
    assert error.message == "a ring of 4 without a switch: spark1 - spark2 - spark3 - spark4 - spark1"
    assert "spark1 and spark3; spark2 and spark4 have no cable" in error.fix
    assert "relayed" in error.fix and "connects trees" in error.fix and "Refused" in error.fix
    assert "(spark1 + spark2 and spark3 + spark4; or spark1 + spark4 and spark2 + spark3)" in error.fix
    assert parted(found) == [
        [("spark1", "spark2"), ("spark3", "spark4")], [("spark1", "spark4"), ("spark2", "spark3")],
    ]  # fmt: skip


def test_the_first_way_is_printed_with_its_lines_and_the_others_by_name() -> None:
    cluster = inventory.load(REPO / "inventories/gb10")
    text = look.text(cluster, judge(FOUR, facts(FOUR, *ring(FOUR))))
    assert "  spark3 + spark4, by spark3's inner cage - spark4's outer cage\n" in text
    assert '          ports: {spark4: {pf: enp1s0f1np1, pci: "0000:01:00.1"}}\n' in text
    assert text.endswith("or spark1 + spark4 and spark2 + spark3: --json has their lines too")
    served = look.text(cluster, judge(FOUR, facts(FOUR, inner(*FOUR))))
    assert "inventories" not in served


def test_every_way_has_each_spark_once_and_as_few_inventories_as_can_be() -> None:
    for name, (nodes, cables, kind, _) in CABLINGS.items():
        found = judge(nodes, facts(nodes, *cables))
        assert bool(found.splits) == (kind.startswith(("a ring", "a line", "islands")) and not found.ring), name
        for way in found.splits:
            cabled = {node for wire in found.wires if len(wire.nodes) > 1 for node in wire.nodes}
            assert sorted(node for part in way for node in part.nodes) == sorted(cabled), name
            assert all(part.used or len(part.nodes) == 1 for part in way), name
    six = [f"spark{number}" for number in range(1, 7)]
    assert [len(way) for way in judge(six, facts(six, *ring(six))).splits] == [3, 3]
    assert parted(judge(FOUR, facts(FOUR, *ring(FOUR)[:3]))) == [[("spark1", "spark2"), ("spark3", "spark4")]]


# --- the file ---------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "fabric.yml"
    target.write_text((REPO / "inventories/gb10/group_vars/all/fabric.yml").read_text())
    return target


def loaded(path: Path, nodes: list[str]) -> Any:
    import yaml

    data = yaml.safe_load(path.read_text())
    return inventory.from_vars(
        {"cluster": {"name": "gb10"}, **data, "nodes": [{"name": node} for node in nodes]}
    ).fabric


def test_the_usual_cabling_leaves_the_shipped_file_as_it_is(path: Path) -> None:
    before = path.read_text()
    assert declare.write(judge(FOUR, facts(FOUR, inner(*FOUR))), path) is False
    assert path.read_text() == before and list(path.parent.iterdir()) == [path]


def test_the_file_says_what_was_found_and_keeps_its_comments(path: Path) -> None:
    before = path.read_text()
    told = facts(FOUR, switch(("spark1", 1), ("spark2", 0), ("spark3", 1), ("spark4", 1)), gbit=100)
    assert declare.write(judge(FOUR, told), path) is True
    fabric = loaded(path, FOUR)
    assert [(rail.pf, rail.pci) for rail in fabric.rails] == [
        ("enp1s0f1np1", "0000:01:00.1"), ("enP2p1s0f1np1", "0002:01:00.1"),
    ]  # fmt: skip
    assert {node: port.pf for node, port in fabric.rails[1].ports.items()} == {"spark2": "enP2p1s0f0np0"}
    assert fabric.rail_gbit == 100 and fabric.rails[0].subnet == "192.168.100.0/24"
    assert "# spark1 is .11 on both rails" in path.read_text()
    assert path.with_name("fabric.yml.before").read_text() == before
    assert declare.write(judge(FOUR, told), path) is False, "a second look changes nothing"
    assert declare.write(judge(FOUR, facts(FOUR, inner(*FOUR))), path) is True, "cables were moved back"
    back = loaded(path, FOUR)
    assert back.rails[0].ports == {} and (back.rails[0].pf, back.rail_gbit) == ("enp1s0f0np0", 200)


def test_a_half_without_functions_is_attached_whole(path: Path) -> None:
    told = facts(FOUR[:2], inner(*FOUR[:2]))
    for node in FOUR[:2]:
        at(told, node, NAMES[INNER][1]).update(total_vfs=0)
    found = judge(FOUR[:2], told)
    assert said(found) == [("warning", "spark1", "functions")] and "attach: pf" in found.findings[0].fix
    declare.write(found, path)
    fabric = loaded(path, FOUR[:2])
    assert [fabric.whole(rail) for rail in fabric.rails] == [False, True]


def test_a_site_that_had_no_rails_gets_the_shipped_subnets(path: Path) -> None:
    path.write_text("fabric:\n  mtu: 1500\n  rails: []\n  check_vf: 1\n")
    declare.write(judge(FOUR[:2], facts(FOUR[:2], inner(*FOUR[:2]))), path)
    fabric = loaded(path, FOUR[:2])
    assert [rail.subnet for rail in fabric.rails] == ["192.168.100.0/24", "192.168.101.0/24"] and fabric.mtu == 1500


def test_a_ring_is_one_line_of_the_file_and_goes_again_with_the_cables(path: Path) -> None:
    """Red before: the file stayed as it was. Whoever is told first gives the cables their subnets, so that stays."""
    found = judge(FOUR[:3], facts(FOUR[:3], *ring(FOUR[:3])))
    assert declare.write(found, path) is True
    assert "  ring: [spark1, spark2, spark3]\n" in path.read_text()
    fabric = loaded(path, FOUR[:3])
    assert [(rail.name, rail.subnet) for rail in fabric.segments][:2] == [
        ("a1", "192.168.100.0/26"), ("a2", "192.168.100.64/26"),
    ]  # fmt: skip
    assert "# spark1 is .11 on both rails" in path.read_text()
    path.write_text(path.read_text().replace("[spark1, spark2, spark3]", "[spark3, spark1, spark2]"))
    assert declare.write(found, path) is False, "the same ring, told from another Spark"
    assert declare.write(judge(FOUR[:3], facts(FOUR[:3], *ring(["spark1", "spark3", "spark2"]))), path) is True
    assert loaded(path, FOUR[:3]).ring == ["spark1", "spark3", "spark2"]
    assert declare.write(judge(FOUR[:3], facts(FOUR[:3], inner(*FOUR[:3]))), path) is True
    assert "ring:" not in path.read_text() and loaded(path, FOUR[:3]).ring == []


def test_a_ring_is_slow_or_dead_at_either_end_of_a_cable() -> None:
    told = facts(FOUR[:3], *ring(FOUR[:3]))
    at(told, "spark2", NAMES[OUTER][0]).update(speed=50_000)
    at(told, "spark3", NAMES[OUTER][1]).update(carrier=False, speed=-1)
    found = judge(FOUR[:3], told)
    assert said(found) == [("error", "spark3", "halves"), ("error", "spark2", "speed"), ("info", "spark1", "ring")]
    assert (found.rail_gbit, found.ring) == (200, ("spark1", "spark2", "spark3"))
