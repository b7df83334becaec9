"""Several profiles on one site: where each of them goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparkloom import case
from sparkloom.base.finding import errors
from sparkloom.cli import show, show_fleet
from sparkloom.cli.options import Inventory, Json


def plan(
    inventory: Inventory = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", help="what runs now, as --json printed an earlier plan (default: build/SITE/fleet.json, if any)"
        ),
    ] = None,
    json: Json = False,
) -> None:
    planned = case.fleet(inventory, record)
    show.out(planned.as_dict(), json, show_fleet.plan)
    raise typer.Exit(1 if planned.fits is False or errors(planned.findings) else 0)
