"""What is measured on a site: a grid of configurations, the collective alone, and what of it is kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sparkloom import case
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json, Profile, writes_to
from sparkloom.measure.allreduce import run as collective
from sparkloom.measure.matrix import report, run
from sparkloom.render.manifests import to_yaml


def matrix(
    spec: Annotated[Path, typer.Argument(help="the grid, as YAML")],
    action: Annotated[
        Literal["run", "report"], typer.Argument(help="run: cells without a result; report: Markdown and HTML")
    ],
    results: Annotated[
        Path | None, typer.Option(help="folder of the cells' JSON files (default: beside the spec)")
    ] = None,
    output: Annotated[Path | None, writes_to("folder for the report")] = None,
    try_known_bad: Annotated[bool, typer.Option("--try-known-bad", help="also run cells that rules skip")] = False,
    again: Annotated[list[str] | None, typer.Option(help="rerun cells with this status")] = None,
    url: Annotated[str | None, typer.Option(help="the server (default: the site's endpoint)")] = None,
    ca: Annotated[Path | None, typer.Option(help="CA certificates for the server")] = None,
    key_file: Annotated[Path | None, typer.Option("--api-key-file", help="file with the server's key")] = None,
    switch: Annotated[
        str | None, typer.Option(help="command that serves a cell (default: ansible-playbook playbooks/switch.yml)")
    ] = None,
    logs: Annotated[
        str | None, typer.Option(help="command that prints the engine's log (default: sparkloom logs)")
    ] = None,
    group: Annotated[str | None, typer.Option(help="with several groups: the group that serves the cells")] = None,
    json: Json = False,
) -> None:
    if action == "report":
        show.out(report.write(spec, results, output), json, _files)
        return
    options = run.Options(
        results=results,
        output=output,
        url=url,
        ca=ca,
        key_file=key_file,
        switch=switch,
        logs=logs,
        try_known_bad=try_known_bad,
        again=tuple(again or ()),
        group=group,
    )
    told = run.run(spec, options, show.complain, live=sys.stderr.isatty())
    show.out(told, json, _grid)
    raise typer.Exit(run.exit_code(told))


def allreduce(
    profile: Profile,
    inventory: Inventory = None,
    largest: Annotated[int, typer.Option(min=8192, help="bytes of the largest all-reduce")] = 1 << 30,
    backend: Annotated[
        Literal["nccl", "gloo"], typer.Option(help="nccl: the engine's own; gloo: over TCP, on CPUs")
    ] = "nccl",
    render: Annotated[bool, typer.Option("--render", help="only print the Kubernetes objects, as YAML")] = False,
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


def _files(data: dict[str, Any]) -> str:
    return "\n".join(f"wrote {path}" for path in data["files"])


def _grid(data: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(data["counts"].items()))
    winner = f"the fastest of those with everything fine: {data['winner']}" if data["winner"] else "no cell was fine"
    stopped = f"stopped by {data['stopped']}: the same command goes on from here" if data["stopped"] else ""
    return "\n".join(line for line in (f"{data['cells']} cells: {counts}", winner, _files(data), stopped) if line)


def _sweep(data: dict[str, Any]) -> str:
    sizes = [
        f"{size['bytes']:>13,} bytes {size['us']:>12,.1f} us {size['busbw_gb_s']:>9.2f} GB/s" for size in data["sizes"]
    ]
    return "\n".join([*sizes, f"{data['verdict']}: {data['why']}"])
