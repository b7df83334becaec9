"""`sparkloom stop` and `start`: a group, or all of them, until somebody says otherwise."""

from __future__ import annotations

from typing import Annotated

import typer

from sparkloom.cli import show
from sparkloom.cli.options import Inventory
from sparkloom.site import holding, now, stopping

Group = Annotated[
    str | None, typer.Argument(help="one of several groups, by name or alias, or `all`", show_default=False)
]


def stop(group: Group = None, inventory: Inventory = None) -> None:
    site = now.read(inventory)
    chosen = stopping.meant(site, group, "stop")
    with holding.by_this_process(site.cluster, _say):
        stopping.stop(site, chosen, holding.person(), _say)
    names, back = ", ".join(one.name for one in chosen), chosen[0].name if len(chosen) == 1 else "all"
    _say(f"nothing of {names} runs any more; `sparkloom start {back}` brings it back")


def start(group: Group = None, inventory: Inventory = None) -> None:
    site = now.read(inventory)
    chosen = stopping.meant(site, group, "start")
    with holding.by_this_process(site.cluster, _say):
        missing = stopping.start(site, chosen, _say)
    show.complain("".join(f"{text}\n" for text in missing))
    raise typer.Exit(1 if missing else 0)


def _say(text: str) -> None:
    show.words(f"{text}\n")
