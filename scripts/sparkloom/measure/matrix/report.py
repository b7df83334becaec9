"""The report of a matrix, as files: the table that people post, and the page with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sparkloom.base.errors import InputError
from sparkloom.base.visible import visible
from sparkloom.measure.matrix import report_words as words
from sparkloom.measure.matrix import spec as specs
from sparkloom.measure.matrix.grid import Grid, collect
from sparkloom.measure.matrix.report_plots import plots
from sparkloom.measure.matrix.spec import CellResult, Spec

HERE = Path(__file__).parent
FILTERS = (
    words.short, words.value, words.figure, words.field, words.fenced, words.status, words.kind, words.settings,
    words.title, words.label, words.measured, words.command, words.moved,
)  # fmt: skip


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
    files[0].write_text(_filled("report.md.j2", grid), encoding="utf-8")
    style = (HERE / "report.css").read_text(encoding="utf-8")
    files[1].write_text(_filled("report.html.j2", grid, style=style, plots=plots(grid)), encoding="utf-8")
    return {
        "files": [str(file) for file in files],
        "cells": len(grid.cells),
        "counts": grid.counts,
        "winner": grid.winner.cell.id if grid.winner else None,
        "regressions": [change.reported.cell.id for change in grid.changes if change.worse],
        "strangers": grid.strangers,
    }


def _filled(template: str, grid: Grid, **more: object) -> str:
    """A template beside this module. What was measured is text: of no terminal, no page and no Markdown the master."""
    page = template == "report.html.j2"
    templates = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=page,
        finalize=_page if page else words.prose,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {function.__name__: function for function in FILTERS}
    return templates.get_template(template).render(grid=grid, top=grid.levels[-1], facts=words.facts, **more)


def _page(value: Any) -> Any:
    """Jinja escapes it; what we drew ourselves is markup already."""
    if isinstance(value, Markup):
        return Markup(visible(value))
    return visible(value) if isinstance(value, str) else value


def _baseline(spec: Spec, spec_path: Path) -> dict[str, CellResult]:
    if spec.baseline is None:
        return {}
    folder = spec_path.parent / spec.baseline
    if not folder.is_dir():
        raise InputError.single(str(spec_path), f"baseline: no such folder {folder}", rule="missing-folder")
    return specs.read_results(folder)
