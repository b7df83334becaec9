"""What was measured near a launch, and what was measured best for a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.judge import measured_rows
from sparkloom.judge.measured_rows import Row
from sparkloom.launch.resolve import Launch
from sparkloom.launch.view import LaunchView

WEIGHTS: dict[str, float] = measured_rows.WORDS["distance"]


@dataclass(frozen=True, slots=True)
class Near:
    """One measured row and how it differs from what was asked: (setting, asked, measured)."""

    row: Row
    distance: float
    differences: tuple[tuple[str, Any, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        keys = ("setting", "asked", "measured")
        named = [dict(zip(keys, difference, strict=True)) for difference in self.differences]
        return {**as_dict(self.row), "distance": self.distance, "differences": named}


def as_dict(row: Row) -> dict[str, Any]:
    """A row as it stands, with the test log that it was read from."""
    return {**row, "source": str(row.get("id", "")).split("#")[0]}


def find(launch: Launch, limit: int = 5) -> list[Near]:
    """The runs closest to a launch, nearest first; each difference is named."""
    asked = _settings(launch.view())
    runs = [_near(row, asked) for row in measured_rows.shipped() if measured_rows.failed(row) is not None]
    return sorted(runs, key=lambda near: (near.distance, str(near.row.get("id"))))[:limit]


def _near(row: Row, asked: Mapping[str, Any]) -> Near:
    measured = _all_measured()[str(row["id"])]
    differences = tuple(
        (name, asked.get(name), measured.get(name)) for name in WEIGHTS if asked.get(name) != measured.get(name)
    )
    return Near(row, round(sum(WEIGHTS[name] for name, _, _ in differences), 3), differences)


@cache
def _all_measured() -> dict[str, dict[str, Any]]:
    return {str(row["id"]): _settings(measured_rows.view_of(row)) for row in measured_rows.shipped()}


def _settings(view: LaunchView) -> dict[str, Any]:
    fixed = {
        "model": view.model_id, "architecture": view.architecture, "packing": view.packing, "release": view.release,
        "image": view.image.split("@")[0], "nodes": view.nodes, "tp": view.tp, "pp": view.pp, "dp": view.dp,
        "ep": view.ep,
    }  # fmt: skip
    flags = {name: view.flags.get(name) for name in WEIGHTS if name not in fixed}
    for switch in ("disable_cuda_graph", "disable_piecewise_cuda_graph"):
        flags[switch] = bool(flags[switch])
    return {**fixed, **flags}


def best(model: str, limit: int = 5) -> list[Row]:
    """The sane runs of a model, best first: by n = 8, then 4, then 1. Names match in any case, whole or in part."""
    wanted = model.lower()
    known = [name for name in models() if wanted in name.lower()]
    if not known or not wanted:
        hint = did_you_mean(model, models())
        raise InputError.single("MODEL", f"no measured row names a model like '{model}'{hint}", rule="unknown-model")
    rows = [row for row in measured_rows.shipped() if row["model"] in known and measured_rows.failed(row) is False]
    rows = [row for row in rows if any(row.get(n) is not None for n in ("n1", "n4", "n8"))]
    return sorted(rows, key=lambda row: tuple(-(row.get(n) or 0.0) for n in ("n8", "n4", "n1")))[:limit]


@cache
def models() -> tuple[str, ...]:
    return tuple(sorted({str(row["model"]) for row in measured_rows.shipped()}))
