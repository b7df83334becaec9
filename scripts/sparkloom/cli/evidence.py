"""The measured rows: nearest to a configuration, best of a model, and how well the rules foresee them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json, Overrides, Profile, Release
from sparkloom.judge import measured_rows, nearest_runs


def find(
    profile: Profile,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    json: Json = False,
) -> None:
    launch = case.judge(profile, inventory, overrides=overrides or [], release=engine_version).launch
    show.out([near.as_dict() for near in nearest_runs.find(launch, limit)], json, _rows)


def best(
    model: Annotated[str, typer.Argument(help="model id, or a part of it")],
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    json: Json = False,
) -> None:
    show.out([nearest_runs.as_dict(row) for row in nearest_runs.best(model, limit)], json, _rows)


def score(
    rows: Annotated[Path, typer.Argument(help="rows as JSON lines, in the shape of the shipped ones")],
    json: Json = False,
) -> None:
    show.out(measured_rows.score(rows), json, _score)


def _rows(data: list[dict[str, Any]]) -> None:
    shown = show.table("outcome", "tp>", "ep>", "release", "moe / attention / fp4 gemm", "n1>", "n4>", "n8>", "id")
    for row in data:
        kernels = " / ".join(
            str(row.get(key) or "-") for key in ("moe_runner_backend", "attention_backend", "fp4_gemm_backend")
        )
        speeds = [show.number(row.get(key)) for key in ("n1", "n4", "n8")]
        release = str(row.get("engine_version") or "-")
        shown.add_row(row["outcome"], str(row["tp"]), str(row["ep"]), release, kernels, *speeds, row["id"])
    show.console().print(shown)


def _score(data: dict[str, Any]) -> str:
    counts = ", ".join(f"{key} {data[key]}" for key in ("rows", "tp", "fp", "fn", "tn", "unknown"))
    quality = f"precision {show.number(data['precision'], 3)}, recall {show.number(data['recall'], 3)}"
    return f"{counts}\n{quality} (positive = the configuration fails)"
