"""The report of a matrix, as files: the table that people post, and the page with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.measure.matrix import propose as proposals
from sparkloom.measure.matrix import report_html, report_text
from sparkloom.measure.matrix import spec as specs
from sparkloom.measure.matrix.grid import collect
from sparkloom.measure.matrix.spec import Result, Spec


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
        "cells": len(grid.cells),
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
