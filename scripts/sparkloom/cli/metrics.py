"""`sparkloom metrics dashboards|rules`: what a Grafana and a Prometheus of your own take, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json
from sparkloom.render.metrics import alerts
from sparkloom.render.metrics import dashboards as made


def dashboards(
    out: Annotated[Path, typer.Option(help="folder for the JSON files, created if missing")],
    json: Json = False,
) -> None:
    written = [str(show.write(out / name, text)) for name, text in made.files().items()]
    show.out({"files": written}, json, lambda data: "\n".join(data["files"]))


def rules(
    where: Inventory = None,
    out: Annotated[Path | None, typer.Option(help="file to write (default: standard output)")] = None,
    json: Json = False,
) -> None:
    """The rules name the ports of this site's rails."""
    chosen = alerts.of(case.cluster(where))
    text = alerts.text(chosen)
    if out:
        show.write(out, text)
    told: dict[str, Any] = {"groups": alerts.groups(chosen), "files": [str(out)] if out else []}
    show.out(told, json, lambda _: str(out) if out else show.say(text))
