"""What is there now: health, what is served, what its ranks say."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sparkloom.base.errors import InputError
from sparkloom.cli import names, show, show_findings
from sparkloom.cli.options import AskBecomePass, Inventory, Json
from sparkloom.site import logs as said
from sparkloom.site import status as served
from sparkloom.site import without_api
from sparkloom.site.checks.report import sentence
from sparkloom.site.doctor.run import run
from sparkloom.site.doctor.verdict import Report

Profile = Annotated[
    str | None,
    typer.Option(
        "--profile", help="compare with this profile (default: the last proved one)", autocompletion=names.begun
    ),
]
Group = Annotated[str | None, typer.Argument(help="group name or alias, if there are several groups")]


def doctor(
    inventory: Inventory = None,
    profile: Profile = None,
    group: Annotated[str | None, typer.Option(help="check the site and only this group")] = None,
    limit: Annotated[str | None, typer.Option(help="only these nodes, as in ansible --limit")] = None,
    ask_become_pass: AskBecomePass = False,
    json: Json = False,
) -> None:
    asked = ["-e", f"doctor_profile={names.exact(profile)}"] if profile else []
    asked += ["-e", f"doctor_group={group}"] if group else []
    extra = [*asked, *(["--limit", limit] if limit else []), *(["-K"] if ask_become_pass else [])]
    health = run(inventory, extra, sys.stderr.write)
    show.out(health.as_dict(), json, lambda _: _health(health))
    raise typer.Exit(0 if health.good else 1)


def _health(health: Report) -> str | None:
    """In a window the findings as `lint` shows them; the last line says what was looked at."""
    terminal = show.console()
    if not (wide := show.window(terminal)):
        return health.text()
    show.say("\n".join([*health.table(wide), "", ""]))
    show_findings.listed(terminal, [{**finding.as_dict(), "message": sentence(finding)} for finding in health.findings])
    show.paragraph(terminal, health.verdict, style=show.COLOURS["ok" if health.good else "error"])
    return None


def status(
    group: Group = None,
    inventory: Inventory = None,
    profile: Profile = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="keep redrawing groups, Sparks, rails and tokens a second")
    ] = False,
    every: Annotated[float, typer.Option(min=1, help="with --watch: seconds between updates")] = 5,
    json: Json = False,
) -> None:
    if watch:
        from sparkloom.cli import watching

        raise typer.Exit(0 if watching.watch(inventory, every, json) else 1)
    try:
        now = served.status(inventory, profile and names.exact(profile), group)
    except InputError as error:
        show.out(without_api.look(error, inventory), json, without_api.text)
        raise typer.Exit(1) from None
    show.out(now, json, served.text)
    raise typer.Exit(0 if served.good(now) else 1)


def logs(
    group: Group = None,
    inventory: Inventory = None,
    rank: Annotated[int | None, typer.Option(help="only this rank (default: all); 0 is the head")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="keep printing new lines")] = False,
    previous: Annotated[bool, typer.Option("--previous", "-p", help="logs of the previous container")] = False,
) -> None:
    try:
        for line in said.logs(inventory, rank, follow=follow, previous=previous, group=group):
            show.say(line + "\n")
    except InputError as error:
        pods = f"{group or '*'}-rank{'*' if rank is None else rank}-0"
        show.words(without_api.text(without_api.look(error, inventory, pods=pods, lines=400)) + "\n")
        raise typer.Exit(1) from None
