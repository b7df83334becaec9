"""Several profiles on one site: where each of them goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparkloom import case
from sparkloom.base.finding import errors
from sparkloom.cli import show, show_fleet
from sparkloom.cli.options import Inventory, Json
from sparkloom.launch.groups import Running


def plan(
    inventory: Inventory = None,
    record: Annotated[
        Path | None,
        typer.Option(help="file of running groups: an earlier plan's --json (default: build/SITE/fleet.json)"),
    ] = None,
    running: Annotated[bool, typer.Option("--running", help="read running groups from the cluster instead")] = False,
    json: Json = False,
) -> None:
    planned = case.fleet(inventory, record, asked(inventory, record) if running else None)
    show.out(planned.as_dict(), json, show_fleet.plan)
    raise typer.Exit(1 if planned.fits is False or errors(planned.findings) else 0)


def asked(inventory: Path | None, record: Path | None) -> dict[str, Running]:
    """What the site's cluster says that runs there."""
    from sparkloom.site.groups import observed

    if record:
        raise typer.BadParameter("--running asks the cluster, --record reads a file: write one of them")
    return observed.running(case.cluster(inventory))
