"""Several profiles on one site: where each of them goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparkloom import case
from sparkloom.base.finding import errors
from sparkloom.cli import show, show_fleet
from sparkloom.cli.options import Inventory, Json
from sparkloom.inputs.fleet_record import Running


def plan(
    inventory: Inventory = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", help="what runs now, as --json printed an earlier plan (default: build/SITE/fleet.json, if any)"
        ),
    ] = None,
    running: Annotated[
        bool, typer.Option("--running", help="ask the cluster what runs now, in place of a record")
    ] = False,
    json: Json = False,
) -> None:
    if running and record:
        raise typer.BadParameter("--running asks the cluster, --record reads a file: write one of them")
    planned = case.fleet(inventory, record, _asked(inventory) if running else None)
    show.out(planned.as_dict(), json, show_fleet.plan)
    raise typer.Exit(1 if planned.fits is False or errors(planned.findings) else 0)


def _asked(inventory: Path | None) -> dict[str, Running]:
    from sparkloom.site import fleet

    return fleet.running(case.cluster(inventory))
