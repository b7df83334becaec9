"""What a recorded file proves: the transport that NCCL took, text or garbage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom.cli import show
from sparkloom.cli.options import Json
from sparkloom.measure import guard as guards
from sparkloom.onnode.nccl import log


def nccl_log(
    files: Annotated[
        list[Path], typer.Argument(help="NCCL_DEBUG=INFO logs, one or several ranks each; - is standard input")
    ],
    rails: Annotated[int, typer.Option(help="number of planned rails")] = 2,
    nodes: Annotated[
        int | None, typer.Option(help="number of planned nodes; with 1 the verdict 'local' is good")
    ] = None,
    json: Json = False,
) -> None:
    verdict = log.read_files(files, rails=rails, nodes=nodes)
    show.out(verdict.as_dict(), json, _transport)
    raise typer.Exit(0 if verdict.good else 1)


def guard(
    file: Annotated[str, typer.Argument(help="recorded stream, JSON lines; - is standard input")] = "-",
    batch: Annotated[Path | None, typer.Option(help="judge the requests of one bench level instead")] = None,
    group: Annotated[str | None, typer.Option(help="with --batch: refuse a level of another group")] = None,
    json: Json = False,
) -> None:
    if group and not batch:
        message = "--group asks whose level it is, which a recorded stream does not say: add --batch FILE"
        raise typer.BadParameter(message)
    verdict = guards.judge_batch_file(batch, group) if batch else guards.judge_file(file)
    show.out(verdict, json, _verdict)
    raise typer.Exit(0 if verdict["verdict"] == "ok" else 1)


def _transport(data: dict[str, Any]) -> None:
    rows = []
    for rank in data["ranks"]:
        hcas = ", ".join(str(hca) for hca in rank.get("hcas") or []) or "-"
        known = (str(rank.get("rank", "?")), str(rank.get("transport", "?")))
        rows.append((*known, hcas, str(rank.get("nccl_version") or "-"), str(rank.get("why") or "")))
    show.table(("rank", "transport", "HCAs", "NCCL", "why"), rows, dropped=("NCCL", "HCAs"))
    colour = show.COLOURS["ok" if data["verdict"] == "roce" else "error"]
    show.console().print(show.coloured("\nverdict: ", (data["verdict"], colour), f" {data.get('why') or ''}"))


def _verdict(data: dict[str, Any]) -> None:
    colour = show.COLOURS["ok" if data["verdict"] == "ok" else "error"]
    kept = {key: value for key, value in data.items() if key not in ("verdict", "looked_at") and value is not None}
    looked = f": {data['looked_at']}, 0 findings" if "looked_at" in data else ""
    details = ", ".join(f"{key} {value}" for key, value in kept.items())
    show.console().print(show.coloured((f"{data['verdict']}{looked}", colour), f" {details}".rstrip()))
