"""`sparkloom stop` and `start`: a group, or all of them, until somebody says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json
from sparkloom.site import holding, now, stopping

Group = Annotated[str | None, typer.Argument(help="group name or alias, or `all`; needed if there are several")]


def stop(group: Group = None, inventory: Inventory = None, json: Json = False) -> None:
    site, say = now.read(inventory), _saying(json)
    chosen = stopping.meant(site, group, "stop")
    with holding.by_this_process(site.cluster, say):
        stopping.stop(site, chosen, holding.person(), say)
    names, back = [one.name for one in chosen], chosen[0].name if len(chosen) == 1 else "all"
    told = f"nothing of {', '.join(names)} runs any more; `sparkloom start {back}` brings it back"
    show.out({"stopped": names}, json, lambda _: told)


def start(group: Group = None, inventory: Inventory = None, json: Json = False) -> None:
    site, say = now.read(inventory), _saying(json)
    chosen = stopping.meant(site, group, "start")
    with holding.by_this_process(site.cluster, say):
        missing = stopping.start(site, chosen, say)
    show.complain("".join(f"{text}\n" for text in missing))
    show.out({"groups": [one.name for one in chosen], "missing": missing}, json, lambda _: None)
    raise typer.Exit(1 if missing else 0)


def _saying(json: bool) -> Callable[[str], None]:
    """JSON has standard output for itself."""
    return lambda text: (show.complain if json else show.words)(f"{text}\n")
