"""What is measured on a site: a grid of configurations, the collective alone, and what of it is kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import typer

from sparkloom import case
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json, Profile
from sparkloom.measure.allreduce import run as collective
from sparkloom.measure.matrix import evidence_add as adding
from sparkloom.measure.matrix import report, run
from sparkloom.render.manifests import to_yaml


def matrix(
    spec: Path,
    action: Literal["run", "propose", "report"],
    results: Path | None = None,
    output: Path | None = None,
    try_known_bad: bool = False,
    again: list[str] | None = None,
    url: str | None = None,
    ca: Path | None = None,
    key_file: Path | None = None,
    switch: str | None = None,
    logs: str | None = None,
    group: str | None = None,
    json: Json = False,
) -> None:
    if action == "propose":
        show.out(report.propose(spec, results), json, lambda proposed: show.say(proposed["text"]))
        return
    if action == "report":
        show.out(report.write(spec, results, output), json, _files)
        return
    options = run.Options(
        results, output, url, ca, key_file, switch, logs, try_known_bad, tuple(again or ()), group
    )  # fmt: skip
    told = run.run(spec, options, show.complain, live=sys.stderr.isatty())
    show.out(told, json, _grid)
    raise typer.Exit(run.exit_code(told))


def allreduce(
    profile: Profile,
    inventory: Inventory = None,
    largest: int = 1 << 30,
    backend: Literal["nccl", "gloo"] = "nccl",
    render: bool = False,
    json: Json = False,
) -> None:
    if render:
        cluster = case.cluster(inventory)
        launch = case.judge(profile, cluster).launch
        show.say(to_yaml(collective.objects(launch, cluster, largest=largest, backend=backend)))
        return
    sweep = collective.run(profile, inventory, show.complain, largest=largest, backend=backend)
    show.out(sweep, json, _sweep)
    raise typer.Exit(0 if sweep["verdict"] == "ok" else 1)


def evidence_add(
    spec: Path,
    cell: str,
    results: Path | None = None,
    to: str | None = None,
    rows: Path | None = None,
    json: Json = False,
) -> None:
    show.out(adding.add(spec, cell, results=results, to=to, rows=rows), json, _added)


def _files(data: dict[str, Any]) -> str:
    return "\n".join(f"wrote {path}" for path in data["files"])


def _grid(data: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(data["counts"].items()))
    winner = f"the fastest of those with everything fine: {data['winner']}" if data["winner"] else "no cell was fine"
    stopped = f"stopped by {data['stopped']}: the same command goes on from here" if data["stopped"] else ""
    return "\n".join(line for line in (f"{data['cells']} cells: {counts}", winner, _files(data), stopped) if line)


def _added(data: dict[str, Any]) -> str:
    return f"{data['profile']}: {data['evidence']['claim']}\n{data['rows']}: {data['row']['id']}"


def _sweep(data: dict[str, Any]) -> str:
    sizes = [
        f"{size['bytes']:>13,} bytes {size['us']:>12,.1f} us {size['busbw_gb_s']:>9.2f} GB/s" for size in data["sizes"]
    ]
    return "\n".join([*sizes, f"{data['verdict']}: {data['why']}"])
