"""Small plots as SVG text. Colours are the page's CSS variables, so light and dark both work; no script, no fonts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 56, 330, 30, 36


@dataclass(slots=True)
class Series:
    """One line: its points, and whether it is the one to look at."""

    label: str
    points: list[tuple[float, float]]
    best: bool = False
    hint: str = ""


@dataclass(slots=True)
class Square:
    """One field of a heat map: a figure, or a word where there is none."""

    value: float | None
    word: str = ""
    best: bool = False
    hint: str = ""


@dataclass(slots=True)
class Heat:
    title: str
    columns: list[str]
    rows: list[str]
    squares: dict[tuple[int, int], Square] = field(default_factory=dict)


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


def bars(series: Sequence[Series], unit: str, name: str) -> str:
    """One horizontal bar for each series' last figure, shortest first."""
    shown = sorted((bar for bar in series if bar.points), key=lambda bar: bar.points[-1][1])
    if not shown:
        return ""
    top, step, left = nice(max(bar.points[-1][1] for bar in shown)), 24, 330
    height = TOP + step * len(shown) + 8
    parts = []
    for number, bar in enumerate(shown):
        figure, y = bar.points[-1][1], TOP + number * step
        width = max(1.0, figure / top * (WIDTH - left - 80))
        kind = "best" if bar.best else "other"
        parts.append(
            f'<g class="{kind}"><title>{escape(bar.hint or bar.label)}</title>'
            f'<text class="label {kind}" x="{left - 8}" y="{y + 13}" text-anchor="end">'
            f"{escape(clip(bar.label, 50))}</text>"
            f'<rect x="{left}" y="{y}" width="{width:.1f}" height="16" rx="2"/>'
            f'<text class="axis" x="{left + width + 6:.1f}" y="{y + 13}">{figure:.2f} {unit}</text></g>'
        )
    return _svg(height, parts, name)


def heat(plot: Heat, low: float, high: float) -> str:
    """A grid of figures: the higher, the stronger the colour; a word where a cell has no figure."""
    wide, tall, left, head = 116, 44, 190, 44
    width, height = left + wide * len(plot.columns) + 8, head + tall * len(plot.rows) + 8
    parts = []
    for number, column in enumerate(plot.columns):
        x = left + number * wide + wide / 2
        parts.append(
            f'<text class="axis" x="{x}" y="{head - 10}" text-anchor="middle">{escape(clip(column, 18))}</text>'
        )
    for number, row in enumerate(plot.rows):
        y = head + number * tall + tall / 2 + 4
        parts.append(f'<text class="axis" x="{left - 10}" y="{y}" text-anchor="end">{escape(clip(row, 28))}</text>')
    for (row_at, column_at), square in sorted(plot.squares.items()):
        x, y = left + column_at * wide, head + row_at * tall
        parts.append(_square(square, x, y, wide - 4, tall - 4, low, high))
    return _svg(height, parts, plot.title, width)


def _square(square: Square, x: float, y: float, width: float, height: float, low: float, high: float) -> str:
    share = 0.0 if square.value is None else (square.value - low) / (high - low) if high > low else 1.0
    absent = "none quiet" if square.word in ("skipped", "not run") else "none"
    kind = absent if square.value is None else ("strong" if share > 0.55 else "weak")
    text = square.word if square.value is None else f"{square.value:.1f}"
    mark = " ★" if square.best else ""
    fill = "" if square.value is None else f' style="fill-opacity:{0.12 + 0.88 * share:.2f}"'
    return (
        f'<g class="square {kind}"><title>{escape(square.hint)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width}" height="{height}" rx="3"{fill}/>'
        f'<text x="{x + width / 2:.1f}" y="{y + height / 2 + 4:.1f}" text-anchor="middle">'
        f"{escape(text)}{mark}</text></g>"
    )


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


def _svg(height: float, parts: list[str], name: str, width: float = WIDTH) -> str:
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
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
