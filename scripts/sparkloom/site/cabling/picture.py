"""The cables that were found, as lines of letters: a row for each cage, and a line down the side for each wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sparkloom.site.cabling.shape import Found
from sparkloom.site.cabling.wires import Cage, Wire

LONGEST, WIDEST = 20, 80  # letters of a Spark's name, and of a line
APART = 3  # columns from one wire to the next


class Signs(NamedTuple):
    plug: str
    empty: str
    across: str
    down: str
    top: str
    middle: str
    bottom: str


UNICODE, ASCII = Signs("●", "○", "─", "│", "┐", "┤", "┘"), Signs("o", ".", "-", "|", "+", "+", "+")


class Track(NamedTuple):
    """A wire with two ends or more, from its first row to its last one, in its column."""

    wire: Wire
    ends: tuple[int, ...]
    column: int

    def sign(self, row: int, signs: Signs) -> str:
        if row in self.ends:
            return {self.ends[0]: signs.top, self.ends[-1]: signs.bottom}.get(row, signs.middle)
        return signs.down if self.ends[0] < row < self.ends[-1] else ""


def lines(found: Found, signs: Signs) -> list[str]:
    rows = list(_rows(found))
    tracks = _tracks(found, rows)
    width = APART * (1 + max((track.column for track in tracks), default=-1))
    named = max((len(cage.name) for cage in found.cages), default=0)
    drawn, last = [], ""
    longest = min(LONGEST, max(map(len, found.nodes)))
    for number, (node, cage) in enumerate(rows):
        name = node if len(node) <= LONGEST else f"..{node[2 - LONGEST :]}"
        begin = f"{name if node != last else '':<{longest}}  {cage.name if cage else '':<{named}} "
        last = node or last
        line = f"{begin}{_strip(cage, number, tracks, width, signs)}  {_said(found, node, cage, number, tracks)}"
        drawn.append(line[:WIDEST].rstrip())
    return drawn


def _rows(found: Found) -> Iterator[tuple[str, Cage | None]]:
    """The cages of each Spark, and a free row before the next one's."""
    for number, node in enumerate(found.nodes):
        if number:
            yield "", None
        mine = [cage for cage in found.cages if cage.node == node]
        yield from ((node, cage) for cage in mine or (None,))


def _tracks(found: Found, rows: list[tuple[str, Cage | None]]) -> list[Track]:
    """The shortest wires are drawn closest; two that do not meet share a column."""
    at = {id(cage): number for number, (_, cage) in enumerate(rows) if cage}
    spans = [(wire, tuple(sorted(at[id(cage)] for cage in wire.cages))) for wire in found.wires if wire.cages[1:]]
    tracks: list[Track] = []
    for wire, ends in sorted(spans, key=lambda span: (span[1][-1] - span[1][0], span[1])):
        taken = {other.column for other in tracks if other.ends[0] <= ends[-1] and ends[0] <= other.ends[-1]}
        tracks.append(Track(wire, ends, next(column for column in range(len(spans)) if column not in taken)))
    return tracks


def _strip(cage: Cage | None, row: int, tracks: list[Track], width: int, signs: Signs) -> str:
    """The plug, its way to its own wire, and the wires that pass."""
    mine = next((track.column for track in tracks if row in track.ends), -1)
    strip = [signs.across if place < APART * (mine + 1) else " " for place in range(width)]
    for track in tracks:
        if sign := track.sign(row, signs):
            strip[APART * (track.column + 1) - 1] = sign
    return f"{(signs.plug if cage.carrier else signs.empty) if cage else ' '}{''.join(strip)}"


def _said(found: Found, node: str, cage: Cage | None, row: int, tracks: list[Track]) -> str:
    """Once for each wire, at its first cage."""
    if cage is None:
        return "no ConnectX-7 port was read" if node else ""
    if not cage.carrier:
        return "no link"
    wire = next(wire for wire in found.wires if cage in wire.cages)
    if any(row in track.ends[1:] for track in tracks):
        return ""
    behind = wire.switches or (("a switch",) if len(wire.nodes) > 2 else ())
    nobody = () if wire.cages[1:] else ("nobody of this inventory",)
    return ", ".join([f"{min(end.speed for end in wire.cages)} Gb/s", *behind, *nobody])
