"""What fabric.yml asks for against the cables that are there: a wrong plug is named with where it belongs."""

from __future__ import annotations

from itertools import permutations

import pytest

from sparkloom.inputs.cluster import Fabric
from sparkloom.inputs.inventory import from_vars
from sparkloom.site.cabling import shape
from tests.launch.test_fabric import variables
from tests.site.cabling.test_cablings import FOUR, INNER, OUTER, Cable, facts, inner, judge, ring, said

ONE, TWO, THREE = THEM = FOUR[:3]


def asked(nodes: list[str] = THEM, **settings: object) -> Fabric:
    return from_vars(variables(len(nodes), **settings)).fabric


def against(fabric: Fabric, nodes: list[str], *cables: Cable) -> shape.Found:
    return shape.judge(nodes, facts(nodes, *cables), "enP7s7", fabric)


RING = asked(ring=THEM)
TURNED = [((ONE, INNER), (TWO, INNER)), ((TWO, OUTER), (THREE, OUTER)), ((THREE, INNER), (ONE, OUTER))]


@pytest.mark.parametrize(
    ("cables", "fixes"),
    [
        (TURNED, ["spark1's inner cage should go to spark2's outer cage",
                  "spark2's inner cage should go to spark3's outer cage"]),
        (ring(THEM)[:2], ["spark3's inner cage should go to spark1's outer cage"]),
        ([*ring(THEM)[:1], ((ONE, OUTER), (TWO, INNER))],  # two cables between two: red before, it was written
         ["spark2's inner cage should go to spark3's outer cage",
          "spark3's inner cage should go to spark1's outer cage"]),
    ],
)  # fmt: skip
def test_a_ring_that_is_asked_for_names_each_plug_and_nothing_is_written(cables: list[Cable], fixes: list[str]) -> None:
    found = against(RING, THEM, *cables)
    assert (found.kind, found.used) == ("not the ring that fabric.yml asks for", {})
    assert [finding.fix for finding in found.findings if finding.rule == "cage"] == fixes


def test_where_the_two_go_now_is_said_too() -> None:
    found = against(RING, THEM, *ring(THEM)[:1], ((THREE, INNER), ("box", INNER)))
    assert [finding.message for finding in found.findings if finding.rule == "cage"] == [
        "spark2's inner cage has no link, spark3's outer cage has no link",
        "spark3's inner cage goes to nobody of this inventory, spark1's outer cage has no link",
    ]


def test_whoever_does_as_told_is_served() -> None:
    """Each end of three cables in every cage that there is: the plugs are moved as named, until none is."""
    ends = [(node, cage) for node in THEM for cage in (INNER, OUTER)]
    for order in permutations(ends):
        cables = [(order[n], order[n + 1]) for n in (0, 2, 4)]
        if any(one[0] == other[0] for one, other in cables):
            continue
        found = against(RING, THEM, *cables)
        named = [finding.fix for finding in found.findings if finding.rule == "cage"]
        assert bool(found.ring) != bool(named), cables
        wanted = {
            f"{node}'s inner cage should go to {other}'s outer cage"
            for node, other in zip(THEM, [TWO, THREE, ONE], strict=True)
        }
        assert {*named} <= wanted


def test_the_other_way_round_and_a_switch_are_what_they_are() -> None:
    assert against(RING, THEM, *ring([ONE, THREE, TWO])).ring == (ONE, THREE, TWO)
    assert against(RING, THEM, inner(*THEM)).kind == "a switch"


def test_a_ring_in_the_outer_cages_is_asked_for_there() -> None:
    """fabric.yml may name the outer port: then that one leads to the next Spark."""
    rails = [
        {"name": "a", "pf": "enp1s0f1np1", "pci": "0000:01:00.1", "subnet": "192.168.100.0/24"},
        {"name": "b", "pf": "enP2p1s0f1np1", "pci": "0002:01:00.1", "subnet": "192.168.101.0/24"},
    ]
    found = against(asked(ring=THEM, rails=rails), THEM, *ring([THREE, TWO, ONE])[:2])
    assert [finding.fix for finding in found.findings] == ["spark3's outer cage should go to spark1's inner cage"]


def test_a_line_of_three_in_the_wrong_cages_has_them_named_beside_the_ways_out() -> None:
    found = judge(THEM, facts(THEM, ((ONE, INNER), (TWO, INNER)), ((TWO, OUTER), (THREE, OUTER))))
    assert said(found) == [("error", node, "cage") for node in THEM] + [("error", ONE, "cable")]
    assert "spark1's inner cage should go to spark2's outer cage" in found.findings[0].fix


def test_a_cage_that_fabric_yml_names_is_no_fault() -> None:
    """Red before: a second look warned of what the first one had written."""
    crossed = ((ONE, INNER), (TWO, OUTER))
    assert said(against(asked(FOUR[:2]), FOUR[:2], crossed)) == [("warning", TWO, "cage")]
    outer = {"enp1s0f0np0": ("enp1s0f1np1", "0000:01:00.1"), "enP2p1s0f0np0": ("enP2p1s0f1np1", "0002:01:00.1")}
    rails = [
        {
            **rail.model_dump(include={"name", "pf", "pci", "subnet"}),
            "ports": {TWO: dict(zip(("pf", "pci"), outer[rail.pf], strict=True))},
        }
        for rail in asked(FOUR[:2]).rails
    ]
    assert said(against(asked(FOUR[:2], rails=rails), FOUR[:2], crossed)) == []
