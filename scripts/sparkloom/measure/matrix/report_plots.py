"""What the report draws of a grid: throughput and first token of its cells, and maps of its axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sparkloom.measure.matrix import report_words as words
from sparkloom.measure.matrix.grid import Grid, ReportedCell

MOST_LINES = 16  # beyond this many, a line plot shows the fastest only
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 340, 56, 330, 30, 36


class Map(NamedTuple):
    """Two axes of the grid, with the cell of each pair of their values; None where the spec leaves it out."""

    title: str
    columns: list[str]
    rows: dict[str, list[ReportedCell | None]]


class Line(NamedTuple):
    """One cell: its points, and the height of its label."""

    best: bool
    label: str
    hint: str
    points: list[tuple[float, float]]
    spot: float


class Plot(NamedTuple):
    """What `report_plot.svg.j2` draws, each with its place."""

    levels: list[tuple[float, float]]
    ticks: list[tuple[float, int]]
    lines: list[Line]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT


class Plots(NamedTuple):
    """`note` says what a plot leaves out; `least` and `most` are the figures between which a map's colours lie."""

    rates: Plot | None  # None where there is nothing to draw
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
    fastest = sorted(fine, key=lambda reported: reported.tok_s(top) or 0.0, reverse=True)[:MOST_LINES]
    left_out = len(fine) - len(fastest)
    note = f"The {MOST_LINES} fastest; {left_out} slower ones are in the table." if left_out > 0 else ""
    waits = [reported for reported in fastest if reported.ttft_s(top) is not None]
    waits.sort(key=lambda reported: reported.ttft_s(top) or 0.0)
    rates = _plot(fastest, grid)
    figures = [figure for reported in fine if (figure := reported.tok_s(top)) is not None]
    return Plots(rates, waits, note, *_maps(grid), min(figures, default=0.0), max(figures, default=1.0))


def _plot(cells: list[ReportedCell], grid: Grid) -> Plot | None:
    """Figures over concurrency; x is logarithmic because levels double."""
    given = {cell.cell.id: [(n, y) for n in grid.levels if (y := cell.tok_s(n)) is not None] for cell in cells}
    shown = sorted((cell for cell in cells if given[cell.cell.id]), key=lambda cell: cell is grid.winner)
    if not shown:
        return None
    most = nice(max(y for cell in shown for _, y in given[cell.cell.id]))
    low, high = math.log2(grid.levels[0]), math.log2(grid.levels[-1])

    def across(n: float) -> float:
        return LEFT + ((math.log2(n) - low) / (high - low) if high > low else 0.5) * (WIDTH - LEFT - RIGHT)

    def down(figure: float) -> float:
        return HEIGHT - BOTTOM - figure / most * (HEIGHT - TOP - BOTTOM)

    points = [[(across(n), down(y)) for n, y in given[cell.cell.id]] for cell in shown]
    spots = spread([line[-1][1] for line in points], TOP, HEIGHT - BOTTOM)
    drawn = [
        Line(cell is grid.winner, clip(words.label(cell, grid), 50), words.title(cell, grid), line, spot)
        for cell, line, spot in zip(shown, points, spots, strict=True)
    ]
    levels = [(down(most * number / 4), most * number / 4) for number in range(5)]
    return Plot(levels, [(across(n), n) for n in grid.levels], drawn)


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
            row: [known.get(tuple({**fixed, down: row, across: column}[axis] for axis in grid.axes))
                  for column in values[across]]
            for row in values[down]
        }  # fmt: skip
        title = ", ".join(f"{words.short(axis)} {value}" for axis, value in fixed.items())
        maps.append(Map(title, values[across], rows))
    return across, down, maps


def spread(wanted: Sequence[float], top: float, bottom: float, gap: float = 14) -> list[float]:
    """Heights for labels: in the order of the points, none on another, inside the plot while there is room."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    spots = list(wanted)
    for before, at in pairwise(order):
        spots[at] = max(spots[at], spots[before] + gap)
    limit = bottom
    for at in reversed(order):  # what was pushed below the plot moves up again, and pushes the others
        spots[at] = max(top, min(spots[at], limit)) if len(order) * gap < bottom - top else spots[at]
        limit = spots[at] - gap
    return spots


def nice(value: float) -> float:
    """The next round number: an axis ends there."""
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return float(
        next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)
    )


def clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
