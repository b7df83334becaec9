"""The matrix report as one HTML file: no script, nothing loaded from anywhere, readable in light, dark and on paper."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from html import escape
from pathlib import Path

from sparkloom.measure.matrix import report_svg as svg
from sparkloom.measure.matrix import report_text as words
from sparkloom.measure.matrix.grid import Change, Grid, ReportedCell
from sparkloom.measure.matrix.report_svg import Heat, Series, Square

MOST_LINES = 16  # beyond this many, a line plot shows the fastest only


def page(grid: Grid) -> str:
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    title = escape(f"{grid.spec.name}: {grid.spec.profile}")
    body = [
        _head(grid),
        _winner(grid),
        _plots(grid),
        _heat(grid),
        _changes(grid),
        _table(grid),
        _failures(grid),
        _skipped(grid),
    ]
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>\n{style}</style>\n</head>\n'
        f"<body>\n<main>\n{''.join(body)}</main>\n</body>\n</html>\n"
    )


def _section(title: str, body: str, note: str = "") -> str:
    if not body:
        return ""
    lead = f"<p>{note}</p>\n" if note else ""
    return f"<section>\n<h2>{title}</h2>\n{lead}{body}\n</section>\n"


def _head(grid: Grid) -> str:
    counted = " ".join(
        f'<li class="{_class(name)}"><b>{count}</b> {escape(name)}</li>' for name, count in sorted(grid.counts.items())
    )
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in words.facts(grid))
    note = f"<p>{escape(grid.spec.note)}</p>" if grid.spec.note else ""
    return (
        f"<header><h1>{escape(grid.spec.name)}</h1>"
        f"<p>{len(grid.cells)} configurations of {escape(grid.spec.profile)}</p>"
        f'{note}<ul class="counts">{counted}</ul>{f"<dl>{listed}</dl>" if listed else ""}</header>\n'
    )


def _class(status: str) -> str:
    return {"ok": "ok", "skipped": "quiet", "not run": "quiet", "partial": "warn"}.get(status, "bad")


def _name(row: ReportedCell, grid: Grid) -> str:
    return f"{row.cell.number} · {words.settings(row, grid.axes)}"


def _winner(grid: Grid) -> str:
    if grid.winner is None:
        return _section("Winner", "<p>None: no cell finished with every request of every level fine.</p>")
    figures = "".join(f"<li><b>{words.figure(grid.winner.tok_s(n))}</b> tok/s at n={n}</li>" for n in grid.levels)
    body = f'<p class="name">{escape(_name(grid.winner, grid))}</p><ul class="figures">{figures}</ul>'
    return _section("Winner", f"{body}<pre>{escape(words.command(grid.winner, grid))}</pre>")


def _plots(grid: Grid) -> str:
    fine = [row for row in grid.cells if row.status in ("ok", "partial")]
    top = grid.levels[-1]
    fastest = sorted(fine, key=lambda row: row.tok_s(top) or 0.0, reverse=True)[:MOST_LINES]
    left_out = len(fine) - len(fastest)
    rates = [_series(row, grid, row.tok_s) for row in fastest]
    waits = [_series(row, grid, row.ttft_s, full=True) for row in fastest]
    note = f"The {MOST_LINES} fastest; {left_out} slower ones are in the table." if left_out > 0 else ""
    rate = "Sum of the requests' own decode rates. Higher is better."
    return _section("Throughput", svg.lines(rates, grid.levels, "tok/s"), f"{rate} {note}") + _section(
        f"Time to the first token at n={top}",
        svg.bars(waits, "s", "time to the first token"),
        "Median. Shorter is better.",
    )


def _series(row: ReportedCell, grid: Grid, figure: Callable[[int], float | None], *, full: bool = False) -> Series:
    points = [(float(n), float(y)) for n in grid.levels if (y := figure(n)) is not None]
    if full and (not points or points[-1][0] != grid.levels[-1]):
        points = []
    values = ", ".join(words.value(row.cell.settings.get(axis)) for axis in grid.axes)
    return Series(f"{row.cell.number} · {values}", points, row is grid.winner, _name(row, grid))


def _heat(grid: Grid) -> str:
    """The two longest axes span the map; each combination of the others gets a map of its own."""
    values = {
        axis: list(dict.fromkeys(words.value(row.cell.settings.get(axis)) for row in grid.cells)) for axis in grid.axes
    }
    if len(values) < 2:
        return ""
    across, down = sorted(values, key=lambda axis: len(values[axis]), reverse=True)[:2]
    others = [axis for axis in grid.axes if axis not in (across, down)]
    top = grid.levels[-1]
    figures = [rate for row in grid.cells if row.status in ("ok", "partial") and (rate := row.tok_s(top)) is not None]
    maps = []
    for chosen in itertools.product(*(values[axis] for axis in others)):
        title = ", ".join(f"{words.short(axis)} {value}" for axis, value in zip(others, chosen, strict=True))
        plot = Heat(title or "all cells", values[across], values[down])
        for row in grid.cells:
            at = {axis: words.value(row.cell.settings.get(axis)) for axis in grid.axes}
            if all(at[axis] == value for axis, value in zip(others, chosen, strict=True)):
                plot.squares[values[down].index(at[down]), values[across].index(at[across])] = _square(row, grid, top)
        caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
        maps.append(f"<figure>{svg.heat(plot, min(figures, default=0), max(figures, default=1))}{caption}</figure>")
    note = f"tok/s at n={top}; across: {escape(words.short(across))}, down: {escape(words.short(down))}."
    return _section("The grid", f'<div class="maps">{"".join(maps)}</div>', note)


def _square(row: ReportedCell, grid: Grid, top: int) -> Square:
    measured = row.tok_s(top) if row.status in ("ok", "partial") else None
    hint = "; ".join([_name(row, grid), words.status(row), *row.notes])
    return Square(measured, words.status(row), row is grid.winner, hint)


def _changes(grid: Grid) -> str:
    if not grid.changes:
        return ""
    body = "".join(
        f'<tr class="{"bad" if change.worse else ""}"><td>{change.row.cell.number}</td>'
        f"<td>{escape(words.settings(change.row, grid.axes))}</td><td>{change.concurrency}</td>"
        f"<td>{words.figure(change.before)}</td><td>{words.figure(change.after)}</td><td>{_moved(change)}</td></tr>"
        for change in sorted(grid.changes, key=lambda c: (not c.worse, c.row.cell.number, c.concurrency))
    )
    worse = sum(change.worse for change in grid.changes)
    heads = "".join(f"<th>{head}</th>" for head in ("cell", "configuration", "n", "before", "now", "change"))
    note = f"{worse} of {len(grid.changes)} figures are worse; up to 3 % is noise."
    return _section(
        "Against the earlier run", f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>", note
    )


def _moved(change: Change) -> str:
    if change.was != change.now:
        return escape(f"{change.was} → {change.now}")
    return "-" if change.ratio is None else f"{change.ratio:+.1%}"


def _table(grid: Grid) -> str:
    top = grid.levels[-1]
    heads = [
        "#",
        *map(words.short, grid.axes),
        "status",
        *(f"n={n}" for n in grid.levels),
        f"n={top} ok",
        f"n={top} TTFT s",
        "note",
    ]
    body = []
    for row in grid.cells:
        level = row.level(top)
        cells = [
            str(row.cell.number),
            *(words.value(row.cell.settings.get(axis)) for axis in grid.axes),
            words.status(row),
        ]
        cells += [words.figure(row.tok_s(n)) for n in grid.levels]
        cells += [
            f"{level.ok}/{level.requests}" if level else "-",
            words.figure(row.ttft_s(top), 2),
            "; ".join(row.notes),
        ]
        kind = "winner" if row is grid.winner else _class(row.status or "not run")
        body.append(f'<tr class="{kind}">' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return _section(
        "All cells",
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>',
    )


def _failures(grid: Grid) -> str:
    failed = [row for row in grid.cells if row.status not in ("ok", "skipped", None)]
    body = "".join(
        f"<details><summary>{escape(_name(row, grid))}: <b>{escape(words.status(row))}</b></summary>"
        + "".join(f"<p>{escape(note)}</p>" for note in row.notes)
        + (
            f"<pre>{escape(row.result.trace_tail.strip())}</pre>"
            if row.result and row.result.trace_tail.strip()
            else ""
        )
        + "</details>"
        for row in failed
    )
    return _section("What failed", body)


def _skipped(grid: Grid) -> str:
    body = "".join(
        f"<li>{escape(_name(row, grid))}: "
        + (
            "; ".join(
                f"<b>{escape(rule)}</b> {escape(why)}"
                for rule, why in zip(row.cell.rules, row.cell.reasons, strict=True)
            )
            or escape("".join(row.notes[:1]))
        )
        + "</li>"
        for row in grid.cells
        if row.status == "skipped"
    )
    return _section("Skipped as known to fail", f"<ul>{body}</ul>" if body else "")
