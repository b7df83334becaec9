"""The report of a matrix: which cells ran, which were fine, which one wins, what changed since an earlier run.

The winner is the cell with the highest sum of per-request tok/s at the highest concurrency, among those in
which every request of every level was fine and no figure beats what memory bandwidth allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.judge.capacity.speed import impossible
from sparkloom.measure.matrix import propose as proposals
from sparkloom.measure.matrix import report_html, report_text
from sparkloom.measure.matrix import spec as specs
from sparkloom.measure.matrix.spec import Cell, Level, Result, Spec

NOISE = 0.03  # two runs of one configuration differ by this much


@dataclass(slots=True)
class Row:
    """One cell with what is known about it; `status` is the report's word, `None` where it has not run yet."""

    cell: Cell
    result: Result | None
    status: str | None
    notes: list[str] = field(default_factory=list)

    def level(self, concurrency: int) -> Level | None:
        found = self.result.levels if self.result else []
        return next((level for level in found if level.concurrency == concurrency), None)

    def tok_s(self, concurrency: int) -> float | None:
        level = self.level(concurrency)
        return level.sum_tok_s if level else None

    def ttft_s(self, concurrency: int) -> float | None:
        level = self.level(concurrency)
        value = (level.ttft_ms.get("p50") or level.ttft_ms.get("mean")) if level else None
        return value / 1000 if value is not None else None


@dataclass(slots=True)
class Change:
    """One cell at one level, against the earlier run."""

    row: Row
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
    rows: list[Row]
    axes: list[str]
    winner: Row | None
    changes: list[Change]
    strangers: list[str]  # results in the folder that are no cell of this spec

    @property
    def levels(self) -> list[int]:
        return sorted(self.spec.bench.concurrency)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(row.status or "not run" for row in self.rows))

    @property
    def provenance(self) -> dict[str, Any]:
        """What all measured cells agree on."""
        found = [row.result.provenance for row in self.rows if row.result and row.result.provenance]
        first: Mapping[str, Any] = found[0] if found else {}
        return {key: value for key, value in first.items() if all(other.get(key) == value for other in found)}


def write(spec_path: Path, results: Path | None = None, output: Path | None = None) -> dict[str, Any]:
    """Writes <name>.md and <name>.html and says what they hold."""
    spec, text = specs.load(spec_path)
    folder = results or spec_path.parent / spec.name
    if not folder.is_dir():
        message = f"no such folder; expected the cells' JSON files there (--results names another one, {spec_path})"
        raise InputError.single(str(folder), message, rule="missing-folder")
    grid = collect(spec, specs.cells(spec, text), specs.read_results(folder), _baseline(spec, spec_path))
    target = output or folder.parent
    target.mkdir(parents=True, exist_ok=True)
    files = [target / f"{spec.name}.md", target / f"{spec.name}.html"]
    files[0].write_text(report_text.markdown(grid), encoding="utf-8")
    files[1].write_text(report_html.page(grid), encoding="utf-8")
    return {
        "files": [str(file) for file in files],
        "cells": len(grid.rows),
        "counts": grid.counts,
        "winner": grid.winner.cell.id if grid.winner else None,
        "regressions": [change.row.cell.id for change in grid.changes if change.worse],
        "strangers": grid.strangers,
    }


def propose(spec_path: Path, results: Path | None = None) -> dict[str, Any]:
    """Rules to propose from failures that none explains."""
    spec, _ = specs.load(spec_path)
    folder = results or spec_path.parent / spec.name
    found = proposals.proposals(spec, list(specs.read_results(folder).values()) if folder.is_dir() else [])
    return {"proposals": [one.as_dict() for one in found], "text": proposals.text(spec, found)}


def _baseline(spec: Spec, spec_path: Path) -> dict[str, Result]:
    if spec.baseline is None:
        return {}
    folder = spec_path.parent / spec.baseline
    if not folder.is_dir():
        raise InputError.single(str(spec_path), f"baseline: no such folder {folder}", rule="missing-folder")
    return specs.read_results(folder)


def collect(spec: Spec, cells: list[Cell], results: Mapping[str, Result], baseline: Mapping[str, Result]) -> Grid:
    """Joins cells and results; pure, so that any front end can show it."""
    rows = [_row(cell, results.get(cell.id)) for cell in cells]
    axes = specs.differing([cell.settings for cell in cells])
    known = {cell.id for cell in cells}
    strangers = [name for name in results if name not in known]
    changes = [change for row in rows for change in _changes(row, baseline.get(row.cell.id))]
    return Grid(spec, rows, axes, _winner(rows, max(spec.bench.concurrency)), changes, strangers)


def _row(cell: Cell, result: Result | None) -> Row:
    if result is None:
        return Row(
            cell,
            None,
            "skipped" if cell.skipped else None,
            [", ".join(dict.fromkeys(cell.rules))] if cell.skipped else [],  # why stands in a section of its own
        )
    notes = [result.note] if result.note else []
    notes += [f"rule {rule}" for rule in result.matched_rules]
    return Row(cell, result, _status(cell, result, notes), notes)


def _status(cell: Cell, result: Result, notes: list[str]) -> str:
    """The recorded status, unless the figures or the guard say otherwise."""
    if result.status != "ok":
        return result.status
    for level in result.levels:
        bound = cell.bounds.get(level.concurrency)
        if level.garbage:
            notes.append(f"the guard calls n={level.concurrency} garbage")
            return "garbage"
        if level.sum_tok_s is not None and impossible(level.sum_tok_s, bound):
            notes.append(
                f"{level.sum_tok_s:.1f} tok/s at n={level.concurrency}; memory allows {bound:.1f}: not computed"
            )
            return "garbage"
    short = [level for level in result.levels if level.ok < level.requests]
    if short:
        notes.append(", ".join(f"n={level.concurrency}: {level.ok}/{level.requests} requests" for level in short))
        return "partial"
    return "ok"


def _winner(rows: list[Row], concurrency: int) -> Row | None:
    fine = [row for row in rows if row.status == "ok" and row.tok_s(concurrency) is not None]
    return max(fine, key=lambda row: row.tok_s(concurrency) or 0.0, default=None)


def _changes(row: Row, before: Result | None) -> list[Change]:
    if before is None or row.result is None:
        return []
    old = Row(row.cell, before, before.status)
    return [
        Change(row, n, old.tok_s(n), row.tok_s(n), before.status, row.status)
        for n in sorted({level.concurrency for level in (*before.levels, *row.result.levels)} or {1})
    ]
