"""The rails: as the inventory plans them, and as the cables are."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer

from sparkloom import case
from sparkloom.base.finding import errors
from sparkloom.cli import show
from sparkloom.cli.options import AskBecomePass, Inventory, Json, named_site


def fabric(
    what: Annotated[
        Literal["plan", "discover"],
        typer.Argument(help="plan: show the plan of fabric.yml; discover: detect the cables and write fabric.yml"),
    ] = "plan",
    inventory: Inventory = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="discover: detect and judge, write no file")] = False,
    ask_become_pass: AskBecomePass = False,
    json: Json = False,
) -> None:
    if what == "plan":
        show.out(case.fabric(inventory), json, _fabric)
        return
    from sparkloom.site.cabling import look, picture

    inventory = named_site(inventory, "which Sparks?")
    extra = ["-K"] if ask_become_pass else []
    found, file = look.discover(inventory, extra, sys.stderr.write, dry=dry_run)
    cluster = case.cluster(inventory)
    told = {**look.as_dict(cluster, found), "fabric": file}
    drawn = "\n".join(picture.lines(found, picture.UNICODE if show.unicode() else picture.ASCII))
    show.out(told, json, lambda _: f"{drawn}\n\n{look.text(cluster, found)}\n{_outcome(found, file)}")
    raise typer.Exit(1 if errors(found.findings) else 0)


def _outcome(found: Any, file: dict[str, Any]) -> str:
    if not found.used:
        return f"{file['path']} is as it was"
    if not file["changed"]:
        return f"{file['path']} says so already"
    if not file["written"]:
        return f"{file['path']} says otherwise; without --dry-run it would be written"
    return f"wrote {file['path']}; what it said before is beside it, in fabric.yml.before"


def _fabric(plan: dict[str, Any]) -> None:
    columns = ("node", "rail", "PF", "PCI", "VF>", "interface", "MAC", "address", "MTU>", "HCA")
    rows = []
    for node in plan["nodes"]:
        for end in node["endpoints"]:
            address = end["address"] if "/" in end["address"] else f"{end['address']}/{end['prefix']}"
            device = (end["rail"], end["pf"], end["pci"], str(end["vf"]), end["interface"], end["mac"])
            rows.append((node["name"], *device, address, str(end["mtu"]), end["hca"]))
    terminal = show.console()
    show.table(columns, rows, dropped=("PCI", "MAC", "PF", "MTU>", "HCA", "VF>"))
    show.paragraph(terminal, "\nnetwork attachments: " + ", ".join(nad["name"] for nad in plan["nads"]))
