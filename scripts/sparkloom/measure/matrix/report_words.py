"""What the report's templates call things by: settings, figures and states in the words of a table."""

from __future__ import annotations

import shlex
from typing import Any

from sparkloom.base.visible import visible
from sparkloom.measure.matrix.grid import Change, Grid, ReportedCell

LABELS = {"startup_crash": "CRASH (start)", "bench_crash": "CRASH (bench)", "garbage": "GARBAGE", "hang": "HANG"}
MEASURED = ("ok", "partial")  # statuses of cells whose figures mean something
SHOWN_PROVENANCE = (
    "group", "sparks", "model", "engine", "release", "image", "image_digest", "driver", "nccl", "transport", "rails",
    "profile_hash",
)  # fmt: skip


def short(name: str) -> str:
    """`launch.moe_runner_backend` is moe_runner_backend in a table head."""
    return name.split(".", 1)[1]


def value(setting: Any) -> str:
    if setting is None or isinstance(setting, bool):
        return {True: "on", False: "off", None: "-"}[setting]
    return f"{setting:g}" if isinstance(setting, float) else str(setting)


def figure(number: float | None, digits: int = 1) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


def field(text: str) -> str:
    """A field of a Markdown table: one line, without its border."""
    return text.replace("|", "\\|").replace("\n", " ")


class Fenced(str):
    """Stands in a block of code, where Markdown reads nothing but the block's end."""


def fenced(text: str) -> Fenced:
    return Fenced(text.replace("```", "'''"))


def prose(value: Any) -> Any:
    """What a template of Markdown puts in: no tag, no image, no link, nothing that a terminal obeys."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return text if isinstance(value, Fenced) else text.replace("<", "&lt;").replace("](", "]\\(").replace("![", "!\\[")


def status(reported: ReportedCell) -> str:
    return LABELS.get(reported.status or "", reported.status or "not run")


def kind(name: str) -> str:
    """A status as a class of the style sheet."""
    return {"ok": "ok", "skipped": "quiet", "not run": "quiet", "partial": "warn"}.get(name, "bad")


def settings(reported: ReportedCell, grid: Grid) -> str:
    return ", ".join(f"{short(axis)} {value(reported.cell.settings.get(axis))}" for axis in grid.axes)


def label(reported: ReportedCell, grid: Grid) -> str:
    values = ", ".join(value(reported.cell.settings.get(axis)) for axis in grid.axes)
    return f"{reported.cell.number} · {values}"


def measured(reported: ReportedCell, concurrency: int) -> float | None:
    """Its speed, where its figures mean something."""
    return reported.tok_s(concurrency) if reported.status in MEASURED else None


def title(reported: ReportedCell, grid: Grid) -> str:
    return f"{reported.cell.number} · {settings(reported, grid)}"


def command(reported: ReportedCell, grid: Grid) -> str:
    """How a person gets this cell again."""
    sets = (part for text in reported.cell.overrides for part in ("--set", text))
    return shlex.join(["sparkloom", "render", grid.spec.profile, *sets])


def moved(change: Change) -> str:
    if change.was != change.now:
        return f"{change.was} → {change.now}"
    return "-" if change.ratio is None else f"{change.ratio:+.1%}"


def facts(grid: Grid) -> list[tuple[str, str]]:
    """What all cells were measured on, in words."""
    known = grid.provenance
    return [(name, _words(known[name])) for name in SHOWN_PROVENANCE if known.get(name)]


def _words(fact: Any) -> str:
    """The transport by its reason; the rails by what was planned for each."""
    if not isinstance(fact, dict):
        return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)
    if planned := fact.get("planned"):
        return "; ".join(f"{name}: {rail['pf']}, MTU {rail['mtu']}" for name, rail in planned.items())
    return ": ".join(str(fact[key]) for key in ("verdict", "why") if fact.get(key)) or str(fact)
