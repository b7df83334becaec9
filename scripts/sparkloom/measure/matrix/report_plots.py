"""What the report draws of a grid: throughput and first token of its cells, and maps of its axes.

As SVG text, in the colours of the page (its CSS variables): no script, no fonts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import NamedTuple

from sparkloom.measure.matrix import report_words as words
from sparkloom.measure.matrix.grid import Grid, ReportedCell

MOST_LINES = 16  # beyond this many, a line plot shows the fastest only
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 56, 330, 30, 36


class Map(NamedTuple):
    """Two axes of the grid, with the cell of each pair of their values; None where the spec leaves it out."""

    title: str
    columns: list[str]
    rows: dict[str, list[ReportedCell | None]]


class Plots(NamedTuple):
    """`note` says what a plot leaves out; `least` and `most` are the figures between which a map's colours lie."""

    rates: str  # as SVG, empty where there is nothing to draw
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
    rates = lines([_series(reported, grid) for reported in fastest], grid.levels, "tok/s")
    figures = [figure for reported in fine if (figure := reported.tok_s(top)) is not None]
    return Plots(rates, waits, note, *_maps(grid), min(figures, default=0.0), max(figures, default=1.0))


def _series(reported: ReportedCell, grid: Grid) -> Series:
    points = [(float(n), y) for n in grid.levels if (y := reported.tok_s(n)) is not None]
    return Series(words.label(reported, grid), points, reported is grid.winner, words.title(reported, grid))


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


@dataclass(slots=True)
class Series:
    """One line: its points, and whether it is the one to look at."""

    label: str
    points: list[tuple[float, float]]
    best: bool = False
    hint: str = ""


def lines(series: Sequence[Series], ticks: Sequence[float], y_label: str) -> str:
    """Figures over concurrency; x is logarithmic because levels double."""
    shown = sorted((line for line in series if line.points), key=lambda line: line.best)
    if not shown:
        return ""
    height, top = 340, nice(max(y for line in shown for _, y in line.points))
    low, high = math.log2(min(ticks)), math.log2(max(ticks))
    span = (high - low) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - low) / span if high > low else 0.5
        return LEFT + across * (WIDTH - LEFT - RIGHT), height - BOTTOM - y / top * (height - TOP - BOTTOM)

    parts = _frame(height, top, y_label)
    for tick in ticks:
        parts.append(
            f'<text class="axis" x="{at(tick, 0)[0]:.1f}" y="{height - 14}" text-anchor="middle">n={tick:g}</text>'
        )
    ends = [at(*line.points[-1]) for line in shown]
    for line, (x, _), spot in zip(shown, ends, spread([y for _, y in ends], TOP, height - BOTTOM), strict=True):
        kind = "best" if line.best else "other"
        parts.append(
            f'<text class="label {kind}" x="{x + 10:.1f}" y="{spot + 4:.1f}">{escape(clip(line.label, 50))}</text>'
        )
    for line in shown:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line.points))
        kind = "best" if line.best else "other"
        parts.append(f'<g class="{kind}"><title>{escape(line.hint or line.label)}</title><polyline points="{path}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in (at(*point) for point in line.points)]
        parts.append("</g>")
    return _svg(height, parts, f"{y_label} over concurrency")


def _frame(height: int, top: float, y_label: str) -> list[str]:
    parts = [f'<text class="axis" x="{LEFT - 46}" y="12">{escape(y_label)}</text>']
    for number in range(5):
        value = top * number / 4
        y = height - BOTTOM - number / 4 * (height - TOP - BOTTOM)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    return parts


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


def _svg(height: float, parts: list[str], name: str) -> str:
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" role="img" '
        f'aria-label="{escape(name)}" xmlns="http://www.w3.org/2000/svg">\n{body}\n</svg>'
    )


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
