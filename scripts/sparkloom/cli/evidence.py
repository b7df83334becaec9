"""The measured rows: nearest to a configuration, best of a model, and how well the rules foresee them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json, Overrides, Profile, Release
from sparkloom.judge import comparable, measured_rows

SPEEDS = ("n1", "n4", "n8")
KERNELS = ("moe_runner_backend", "attention_backend", "fp4_gemm_backend")


def find(
    profile: Profile,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    json: Json = False,
) -> None:
    launch = case.judge(profile, inventory, overrides=overrides or [], release=engine_version).launch
    show.out([near.as_dict() for near in comparable.find(launch, limit)], json, _rows)


def best(
    model: Annotated[str, typer.Argument(help="model id, or a part of it")],
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    json: Json = False,
) -> None:
    show.out([comparable.as_dict(row) for row in comparable.best(model, limit)], json, _rows)


def compare(
    one: Annotated[
        str, typer.Argument(help="PROFILE (its best figure), PROFILE#2 (its second) or a measured row's id")
    ],
    other: Annotated[str, typer.Argument(help="the other figure, in the same form")],
    json: Json = False,
) -> None:
    show.out(comparable.compare(comparable.named(one), comparable.named(other)).as_dict(), json, _comparison)


def score(
    rows: Annotated[Path, typer.Argument(help="rows as JSON lines, in the format of the shipped rows")],
    json: Json = False,
) -> None:
    show.out(measured_rows.score(rows), json, _score)


def _rows(data: list[dict[str, Any]]) -> None:
    rows = []
    for row in data:
        split = (str(row["tp"]), str(row["ep"]), str(row.get("engine_version") or "-"))
        kernels = " / ".join(str(row.get(key) or "-") for key in KERNELS)
        speeds = (show.number(row.get(key)) for key in SPEEDS)
        apart = (
            f"{item['setting']} {_value(item['measured'])}, not {_value(item['asked'])}"
            for item in row.get("differences", ())
        )
        differs = ["; ".join(apart)] if "differences" in row else []
        rows.append((row["outcome"], *split, kernels, *speeds, row["id"], *differs))
    names = ("outcome", "tp>", "ep>", "release", "moe / attention / fp4 gemm", "n1>", "n4>", "n8>", "id", "differs")
    compared = any("differences" in row for row in data)
    dropped = ("differs", "ep>", "tp>", "n4>", "moe / attention / fp4 gemm", "release")
    show.table(names if compared else names[:-1], rows, dropped)


def _value(value: object) -> str:
    return "unset" if value is None else str(value)


def _comparison(data: dict[str, Any]) -> str:
    said = [data["verdict"]]
    for side in (data["one"], data["other"]):
        speeds = ", ".join(f"{key} {show.number(value)}" for key, value in side["numbers"].items())
        said.append(f"  {side['name']}: {speeds}")
    for key, words in (("spoilt", "spoilt by"), ("differs", "differs in"), ("unknown", "nobody wrote down")):
        if data[key]:
            said.append(f"  {words}: {'; '.join(data[key])}")
    return "\n".join(said)


def _score(data: dict[str, Any]) -> str:
    counts = ", ".join(f"{key} {data[key]}" for key in ("rows", "tp", "fp", "fn", "tn", "unknown"))
    quality = f"precision {show.number(data['precision'], 3)}, recall {show.number(data['recall'], 3)}"
    return f"{counts}\n{quality} (positive = the configuration fails)"
