"""The grid with its results: which cells ran, which were fine, which one wins, what changed since an earlier run.

The winner is the cell with the highest sum of the tok/s of the requests that were answered at once, at the
highest concurrency, among those in which every request of every level was fine and no figure beats what memory
bandwidth allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkloom.measure.matrix import spec as specs
from sparkloom.measure.matrix.spec import Cell, CellResult, Level, Spec

NOISE = 0.03  # two runs of one configuration differ by this much


@dataclass(slots=True)
class ReportedCell:
    """One cell with what is known about it; `status` is the report's word, `None` where it has not run yet."""

    cell: Cell
    result: CellResult | None
    status: str | None
    notes: list[str] = field(default_factory=list)

    def level(self, concurrency: int) -> Level | None:
        levels = self.result.levels if self.result else []
        return next((level for level in levels if level.concurrency == concurrency), None)

    def tok_s(self, concurrency: int) -> float | None:
        level = self.level(concurrency)
        return level.speed if level else None

    def ttft_s(self, concurrency: int) -> float | None:
        level = self.level(concurrency)
        value = (level.ttft_ms.get("p50") or level.ttft_ms.get("mean")) if level else None
        return value / 1000 if value is not None else None

    @property
    def trace(self) -> str:
        return self.result.trace_tail.strip() if self.result else ""

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """The rules that it is skipped for, each with why."""
        return list(zip(self.cell.rules, self.cell.reasons, strict=True))


@dataclass(slots=True)
class Change:
    """One cell at one level, against the earlier run."""

    reported: ReportedCell
    concurrency: int
    before: float | None
    after: float | None
    was: str
    now: str | None

    @property
    def ratio(self) -> float | None:
        return self.after / self.before - 1 if self.before and self.after is not None else None

    @property
    def worse(self) -> bool:
        broke = self.was == "ok" and self.now not in ("ok", None)
        return broke or (self.ratio is not None and self.ratio < -NOISE)


@dataclass(slots=True)
class Grid:
    """Everything that a report shows."""

    spec: Spec
    cells: list[ReportedCell]
    axes: list[str]
    winner: ReportedCell | None
    changes: list[Change]
    strangers: list[str]  # results in the folder that are no cell of this spec

    @property
    def levels(self) -> list[int]:
        return sorted(self.spec.bench.concurrency)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(reported.status or "not run" for reported in self.cells))

    @property
    def provenance(self) -> dict[str, Any]:
        """What all measured cells agree on."""
        results = [reported.result for reported in self.cells if reported.result]
        known = [result.provenance for result in results if result.provenance]
        first: Mapping[str, Any] = known[0] if known else {}
        return {key: value for key, value in first.items() if all(other.get(key) == value for other in known)}

    @property
    def failed(self) -> list[ReportedCell]:
        return [reported for reported in self.cells if reported.status not in ("ok", "skipped", None)]

    @property
    def skipped(self) -> list[ReportedCell]:
        return [reported for reported in self.cells if reported.status == "skipped"]

    @property
    def worst_first(self) -> list[Change]:
        return sorted(self.changes, key=lambda c: (not c.worse, c.reported.cell.number, c.concurrency))


def collect(
    spec: Spec, cells: list[Cell], results: Mapping[str, CellResult], baseline: Mapping[str, CellResult]
) -> Grid:
    """Joins cells and results; pure, so that any front end can show it."""
    judged = [_reported(cell, results.get(cell.id)) for cell in cells]
    axes = specs.differing([cell.settings for cell in cells])
    known = {cell.id for cell in cells}
    strangers = [name for name in results if name not in known]
    changes = [change for reported in judged for change in _changes(reported, baseline.get(reported.cell.id))]
    return Grid(spec, judged, axes, _winner(judged, max(spec.bench.concurrency)), changes, strangers)


def _reported(cell: Cell, result: CellResult | None) -> ReportedCell:
    if result is None and cell.skipped:  # why stands in a section of its own
        return ReportedCell(cell, None, "skipped", [", ".join(dict.fromkeys(cell.rules))])
    if result is None:
        return ReportedCell(cell, None, None)
    notes = [result.note] if result.note else []
    notes += [f"rule {rule}" for rule in result.matched_rules]
    return ReportedCell(cell, result, _status(cell, result, notes), notes)


def _status(cell: Cell, result: CellResult, notes: list[str]) -> str:
    """The recorded status, unless the figures or the guard say otherwise."""
    if result.status != "ok":
        return result.status
    for level in result.levels:
        if why := level.garbage(cell.bounds.get(level.concurrency)):
            notes.append(why)
            return "garbage"
    short = [level for level in result.levels if level.ok < level.requests]
    if short:
        notes.append(", ".join(f"n={level.concurrency}: {level.ok}/{level.requests} requests" for level in short))
        return "partial"
    return "ok"


def _winner(judged: list[ReportedCell], concurrency: int) -> ReportedCell | None:
    fine = [reported for reported in judged if reported.status == "ok" and reported.tok_s(concurrency) is not None]
    return max(fine, key=lambda reported: reported.tok_s(concurrency) or 0.0, default=None)


def _changes(reported: ReportedCell, before: CellResult | None) -> list[Change]:
    if before is None or reported.result is None:
        return []
    old = ReportedCell(reported.cell, before, before.status)
    return [
        Change(reported, n, old.tok_s(n), reported.tok_s(n), before.status, reported.status)
        for n in sorted({level.concurrency for level in (*before.levels, *reported.result.levels)} or {1})
    ]
