"""`sparkloom metrics dashboards|rules`: what a Grafana and a Prometheus of your own take, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.base import files
from sparkloom.base.errors import InputError
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json
from sparkloom.render.metrics import alerts
from sparkloom.render.metrics import dashboards as made


def dashboards(
    out: Annotated[Path, typer.Option("--out", help="folder for the JSON files, created if missing")],
    json: Json = False,
) -> None:
    written = [_written(out / name, text) for name, text in made.files().items()]
    show.out({"files": written}, json, lambda data: "\n".join(data["files"]))


def rules(
    where: Inventory = None,
    out: Annotated[Path | None, typer.Option("--out", help="file to write (default: to standard output)")] = None,
    json: Json = False,
) -> None:
    """The rules name the ports of this site's rails."""
    chosen = alerts.of(case.cluster(where))
    text = alerts.text(chosen)
    if out:
        _written(out, text)
    told: dict[str, Any] = {"groups": alerts.groups(chosen), "files": [str(out)] if out else []}
    show.out(told, json, lambda _: str(out) if out else show.say(text))


def _written(path: Path, text: str) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, text)
    except OSError as error:
        message = f"{error.strerror}; --out names a place that you may write"
        raise InputError.single(str(path), message, rule="option") from None
    return str(path)
