"""The matrix report as Markdown: one table of results in the shape that people post, then winner, failures, changes."""

from __future__ import annotations

import shlex
from typing import Any

from sparkloom.measure.matrix.grid import Grid, ReportedCell

LABELS = {"startup_crash": "CRASH (start)", "bench_crash": "CRASH (bench)", "garbage": "GARBAGE", "hang": "HANG"}
SHOWN_PROVENANCE = (
    "model",
    "engine",
    "release",
    "image",
    "image_digest",
    "driver",
    "nccl",
    "transport",
    "rails",
    "profile_hash",
)


def markdown(grid: Grid) -> str:
    parts = [f"# {grid.spec.name}: {len(grid.cells)} configurations of {grid.spec.profile}", _head(grid), _table(grid)]
    parts += [_winner(grid), _failures(grid), _skipped(grid), _changes(grid), _footnote(grid)]
    return "\n\n".join(part for part in parts if part) + "\n"


def short(name: str) -> str:
    """`launch.moe_runner_backend` is moe_runner_backend in a table head."""
    return name.split(".", 1)[1]


def value(found: Any) -> str:
    if found is None or isinstance(found, bool):
        return {True: "on", False: "off", None: "-"}[found]
    return f"{found:g}" if isinstance(found, float) else str(found)


def figure(number: float | None, digits: int = 1) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


def status(row: ReportedCell) -> str:
    return LABELS.get(row.status or "", row.status or "not run")


def settings(row: ReportedCell, axes: list[str]) -> str:
    return ", ".join(f"{short(axis)} {value(row.cell.settings.get(axis))}" for axis in axes)


def command(row: ReportedCell, grid: Grid) -> str:
    """How a person gets this cell again."""
    sets = (part for text in row.cell.overrides for part in ("--set", text))
    return shlex.join(["sparkloom", "render", grid.spec.profile, *sets])


def facts(grid: Grid) -> list[tuple[str, str]]:
    """What all cells were measured on, in words."""
    known = grid.provenance
    return [(name, _words(known[name])) for name in SHOWN_PROVENANCE if known.get(name)]


def _words(fact: Any) -> str:
    """The transport by its reason; the rails by what was planned for each."""
    if not isinstance(fact, dict):
        return str(fact)
    if planned := fact.get("planned"):
        return "; ".join(f"{name}: {rail['pf']}, MTU {rail['mtu']}" for name, rail in planned.items())
    return ": ".join(str(fact[key]) for key in ("verdict", "why") if fact.get(key)) or str(fact)


def _head(grid: Grid) -> str:
    lines = [f"- {name}: {text}" for name, text in facts(grid)]
    counted = ", ".join(f"{count} {name}" for name, count in sorted(grid.counts.items()))
    lines.append(f"- cells: {counted}")
    if grid.spec.note:
        lines.append(f"- {grid.spec.note}")
    return "\n".join(lines)


def _table(grid: Grid) -> str:
    top = grid.levels[-1]
    heads = ["#", "cell", *map(short, grid.axes), "status"]
    heads += [f"n={n} tok/s" for n in grid.levels] + [f"n={top} ok", f"n={top} TTFT s", "note"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for row in grid.cells:
        level = row.level(top)
        cells = [str(row.cell.number), f"`{row.cell.id}`"]
        cells += [value(row.cell.settings.get(axis)) for axis in grid.axes]
        cells.append(f"**{status(row)}**" if row is grid.winner else status(row))
        cells += [figure(row.tok_s(n)) for n in grid.levels]
        cells += [f"{level.ok}/{level.requests}" if level else "-", figure(row.ttft_s(top), 2), "; ".join(row.notes)]
        lines.append(_line(cells))
    return (
        "## Results\n\ntok/s is the sum over the requests of a level of each request's own decode rate.\n\n"
        + "\n".join(lines)
    )


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _winner(grid: Grid) -> str:
    if grid.winner is None:
        return "## Winner\n\nNone: no cell finished with every request of every level fine."
    figures = ", ".join(f"n={n} {figure(grid.winner.tok_s(n))}" for n in grid.levels)
    cell = grid.winner.cell
    return (
        f"## Winner\n\nCell {cell.number} (`{cell.id}`): {settings(grid.winner, grid.axes)}; {figures} tok/s.\n\n"
        f"```\n{command(grid.winner, grid)}\n```"
    )


def _failures(grid: Grid) -> str:
    failed = [row for row in grid.cells if row.status not in ("ok", "skipped", None)]
    parts = []
    for row in failed:
        text = f"### Cell {row.cell.number} (`{row.cell.id}`): {status(row)}\n\n{settings(row, grid.axes)}"
        text += "".join(f"\n- {note}" for note in row.notes)
        if row.result and row.result.trace_tail.strip():
            tail = row.result.trace_tail.strip().splitlines()[-12:]
            text += "\n\n```\n" + "\n".join(tail).replace("```", "'''") + "\n```"
        parts.append(text)
    return "## What failed\n\n" + "\n\n".join(parts) if parts else ""


def _skipped(grid: Grid) -> str:
    skipped = [row for row in grid.cells if row.status == "skipped"]
    lines = [
        f"- cell {row.cell.number} (`{row.cell.id}`), {settings(row, grid.axes)}: "
        + (
            "; ".join(f"**{r}** {why}" for r, why in zip(row.cell.rules, row.cell.reasons, strict=True))
            or "".join(row.notes[:1])
        )
        for row in skipped
    ]
    return "## Skipped as known to fail\n\n" + "\n".join(lines) if lines else ""


def _changes(grid: Grid) -> str:
    if not grid.changes:
        return ""
    lines = [_line(["cell", "configuration", "n", "before", "now", "change"]), _line(["---"] * 6)]
    for change in sorted(grid.changes, key=lambda c: (not c.worse, c.row.cell.number, c.concurrency)):
        ratio = "-" if change.ratio is None else f"{change.ratio:+.1%}"
        moved = f"{change.was} → {change.now}" if change.was != change.now else ratio
        mark = f"**{moved}**" if change.worse else moved
        lines.append(
            _line(
                [
                    f"`{change.row.cell.id}`", settings(change.row, grid.axes), str(change.concurrency),
                    figure(change.before), figure(change.after), mark,
                ]
            )
        )  # fmt: skip
    return "## Against the earlier run\n\n" + "\n".join(lines)


def _footnote(grid: Grid) -> str:
    if not grid.strangers:
        return ""
    return f"Not part of this grid, left out: {', '.join(f'`{name}`' for name in grid.strangers)}."
