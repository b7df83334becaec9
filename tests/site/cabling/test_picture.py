"""The picture of what was found: four Sparks on half a screen, every plug and every wire in its place."""

from __future__ import annotations

import pytest

from sparkloom.site.cabling import picture
from tests.site.cabling.test_cablings import CABLINGS, FOUR, INNER, NAMES, facts, inner, judge, ring, switch

RING_OF_FOUR = """\
spark1  inner cage ●──┐        200 Gb/s
        outer cage ●──│─────┐  200 Gb/s
                      │     │
spark2  inner cage ●──│──┐  │  200 Gb/s
        outer cage ●──┘  │  │
                         │  │
spark3  inner cage ●──┐  │  │  200 Gb/s
        outer cage ●──│──┘  │
                      │     │
spark4  inner cage ●──│─────┘
        outer cage ●──┘"""
SWITCH = """\
spark1  inner cage o--+  200 Gb/s, a switch
        outer cage .  |  no link
                      |
spark2  inner cage o--+
        outer cage .  |  no link
                      |
spark3  inner cage .  |  no link
        outer cage o--+

spark4  inner cage o     200 Gb/s, nobody of this inventory
        outer cage .     no link"""


def test_a_ring_of_four_is_seen_at_a_glance() -> None:
    assert "\n".join(picture.lines(judge(FOUR, facts(FOUR, *ring(FOUR))), picture.UNICODE)) == RING_OF_FOUR


def test_a_switch_in_letters_that_every_terminal_has() -> None:
    cables = switch(("spark1", 0), ("spark2", 0), ("spark3", 1)), inner("spark4")
    assert "\n".join(picture.lines(judge(FOUR, facts(FOUR, *cables)), picture.ASCII)) == SWITCH


def test_a_switch_that_says_its_name_has_it() -> None:
    told = facts(FOUR, inner(*FOUR))
    told["spark1"]["lldp"] = [{"interface": NAMES[INNER][0], "chassis": "aa", "system": "leaf1", "port": "q"}]
    assert picture.lines(judge(FOUR, told), picture.ASCII)[0].endswith("  200 Gb/s, leaf1")


@pytest.mark.parametrize("name", CABLINGS)
def test_each_end_of_each_wire_is_drawn_and_every_line_is_followed_to_its_other_end(name: str) -> None:
    nodes, cables, _, _ = CABLINGS[name]
    found = judge(nodes, facts(nodes, *cables))
    drawn = picture.lines(found, picture.UNICODE)
    rows = [number for number, line in enumerate(drawn) if "cage" in line]
    place = {(cage.node, cage.name): row for cage, row in zip(found.cages, rows, strict=True)}
    wires = {
        tuple(sorted(place[cage.node, cage.name] for cage in wire.cages)) for wire in found.wires if wire.cages[1:]
    }
    assert {tuple(ends) for ends in followed(drawn)} == wires
    assert len(drawn) <= 24 and max(map(len, drawn)) <= 80
    assert picture.lines(found, picture.ASCII) == [line.translate(ASCII) for line in drawn]


ASCII = str.maketrans("●○─│┐┤┘", "o.-|+++")


def followed(drawn: list[str]) -> list[list[int]]:
    """The rows at which each line down the side has a plug."""
    found = []
    for row, line in enumerate(drawn):
        for column in (at for at, sign in enumerate(line) if sign == "┐"):
            ends = [row]
            while drawn[ends[-1]][column] != "┘":
                below = next(n for n in range(ends[-1] + 1, len(drawn)) if drawn[n][column] in "┤┘")
                assert all(drawn[n][column] == "│" for n in range(ends[-1] + 1, below))
                ends.append(below)
            assert all("●" in drawn[end] and drawn[end].index("●") < column for end in ends)
            found.append(ends)
    return found


def test_long_names_keep_their_ends_and_no_line_is_wider_than_a_terminal() -> None:
    nodes = [f"dgx-spark-in-the-basement-of-building-{n}" for n in range(1, 5)]
    told = facts(nodes, *ring(nodes)[:3])
    for node in nodes:
        told[node]["lldp"] = [{"interface": NAMES[INNER][0], "chassis": "aa", "system": "s" * 200, "port": "q"}]
    drawn = picture.lines(judge(nodes, told), picture.ASCII)
    assert drawn[0].startswith("..ment-of-building-1  ") and max(map(len, drawn)) == 80 and len(drawn) == 11


def test_a_spark_that_did_not_answer_has_a_row() -> None:
    drawn = picture.lines(judge(FOUR, facts(FOUR[:3], inner(*FOUR[:3]))), picture.ASCII)
    assert drawn[-1].split() == ["spark4", "no", "ConnectX-7", "port", "was", "read"]
