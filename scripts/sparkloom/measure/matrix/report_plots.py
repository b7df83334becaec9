"""What the report draws of a grid: throughput and first token of its cells, and maps of its axes."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from sparkloom.measure.matrix import report_words as words
from sparkloom.measure.matrix.grid import Grid, ReportedCell

MOST_BARS = 16


class Map(NamedTuple):
    """Two axes of the grid, with the cell of each pair of their values; None where the spec leaves it out."""

    title: str
    columns: list[str]
    rows: dict[str, list[ReportedCell | None]]


class Plots(NamedTuple):
    """`note` says what a plot leaves out; `least` and `most` are the figures between which a map's colours lie."""

    rates: list[ReportedCell]  # the fastest first
    waits: list[ReportedCell]  # the shortest first
    note: str
    across: str
    down: str
    maps: list[Map]
    least: float
    most: float

    def share(self, figure: float) -> float:
        return (figure - self.least) / (self.most - self.least) if self.most > self.least else 1.0


def plots(grid: Grid) -> Plots:
    top = grid.levels[-1]
    fine = [reported for reported in grid.cells if reported.status in words.MEASURED]
    fastest = sorted(fine, key=lambda reported: reported.tok_s(top) or 0.0, reverse=True)[:MOST_BARS]
    left_out = len(fine) - len(fastest)
    note = f"The {MOST_BARS} fastest; {left_out} slower ones are in the table." if left_out > 0 else ""
    waits = [reported for reported in fastest if reported.ttft_s(top) is not None]
    waits.sort(key=lambda reported: reported.ttft_s(top) or 0.0)
    rates = [reported for reported in fastest if reported.tok_s(top) is not None]
    figures = [figure for reported in fine if (figure := reported.tok_s(top)) is not None]
    return Plots(rates, waits, note, *_maps(grid), min(figures, default=0.0), max(figures, default=1.0))


def _maps(grid: Grid) -> tuple[str, str, list[Map]]:
    """The two longest axes span the map; each combination of the others gets a map of its own."""
    known = {
        tuple(words.value(reported.cell.settings.get(axis)) for axis in grid.axes): reported for reported in grid.cells
    }
    values = {axis: list(dict.fromkeys(at[place] for at in known)) for place, axis in enumerate(grid.axes)}
    if len(values) < 2:
        return "", "", []
    across, down = sorted(values, key=lambda axis: len(values[axis]), reverse=True)[:2]
    others = [axis for axis in grid.axes if axis not in (across, down)]
    maps = []
    for chosen in itertools.product(*(values[axis] for axis in others)):
        fixed = dict(zip(others, chosen, strict=True))
        rows = {
            row: [
                known.get(tuple({**fixed, down: row, across: column}[axis] for axis in grid.axes))
                for column in values[across]
            ]
            for row in values[down]
        }
        title = ", ".join(f"{words.short(axis)} {value}" for axis, value in fixed.items())
        maps.append(Map(title, values[across], rows))
    return across, down, maps
