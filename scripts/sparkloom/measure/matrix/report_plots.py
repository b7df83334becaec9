"""What the report draws of a grid: throughput and first token of its cells, and maps of its axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

from sparkloom.measure.matrix import report_svg as svg
from sparkloom.measure.matrix import report_words as words
from sparkloom.measure.matrix.grid import Grid, ReportedCell
from sparkloom.measure.matrix.report_svg import Heat, Series, Square

MOST_LINES = 16  # beyond this many, a line plot shows the fastest only


class Plots(NamedTuple):
    """SVG texts, empty where there is nothing to draw; `note` says what a plot leaves out."""

    rates: str
    waits: str
    note: str
    across: str
    down: str
    maps: list[tuple[str, str]]


def plots(grid: Grid) -> Plots:
    fine = [reported for reported in grid.cells if reported.status in ("ok", "partial")]
    top = grid.levels[-1]
    fastest = sorted(fine, key=lambda reported: reported.tok_s(top) or 0.0, reverse=True)[:MOST_LINES]
    left_out = len(fine) - len(fastest)
    rates = [_series(reported, grid, reported.tok_s) for reported in fastest]
    waits = [_series(reported, grid, reported.ttft_s, full=True) for reported in fastest]
    note = f"The {MOST_LINES} fastest; {left_out} slower ones are in the table." if left_out > 0 else ""
    return Plots(
        svg.lines(rates, grid.levels, "tok/s"),
        svg.bars(waits, "s", "time to the first token"),
        note,
        *_maps(grid, top),
    )


def _series(reported: ReportedCell, grid: Grid, figure: Callable[[int], float | None], *, full: bool = False) -> Series:
    points = [(float(n), float(y)) for n in grid.levels if (y := figure(n)) is not None]
    if full and (not points or points[-1][0] != grid.levels[-1]):
        points = []
    values = ", ".join(words.value(reported.cell.settings.get(axis)) for axis in grid.axes)
    label = f"{reported.cell.number} · {values}"
    return Series(label, points, reported is grid.winner, words.title(reported, grid))


def _maps(grid: Grid, top: int) -> tuple[str, str, list[tuple[str, str]]]:
    """The two longest axes span the map; each combination of the others gets a map of its own."""
    known = [{axis: words.value(reported.cell.settings.get(axis)) for axis in grid.axes} for reported in grid.cells]
    values = {axis: list(dict.fromkeys(at[axis] for at in known)) for axis in grid.axes}
    if len(values) < 2:
        return "", "", []
    across, down = sorted(values, key=lambda axis: len(values[axis]), reverse=True)[:2]
    others = [axis for axis in grid.axes if axis not in (across, down)]
    squares = [_square(reported, grid, top) for reported in grid.cells]
    figures = [square.value for square in squares if square.value is not None]
    maps = []
    for chosen in itertools.product(*(values[axis] for axis in others)):
        title = ", ".join(f"{words.short(axis)} {value}" for axis, value in zip(others, chosen, strict=True))
        plot = Heat(title or "all cells", values[across], values[down])
        for at, square in zip(known, squares, strict=True):
            if all(at[axis] == value for axis, value in zip(others, chosen, strict=True)):
                plot.squares[values[down].index(at[down]), values[across].index(at[across])] = square
        maps.append((title, svg.heat(plot, min(figures, default=0), max(figures, default=1))))
    return across, down, maps


def _square(reported: ReportedCell, grid: Grid, top: int) -> Square:
    measured = reported.tok_s(top) if reported.status in ("ok", "partial") else None
    hint = "; ".join([words.title(reported, grid), words.status(reported), *reported.notes])
    return Square(measured, words.status(reported), reported is grid.winner, hint)
