"""What speaks against a profile, whether it fits, and why a start failed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparkloom import case
from sparkloom.base import amount
from sparkloom.base.assumption import SIGN
from sparkloom.base.errors import InputError
from sparkloom.cli import linting, names, show, show_findings, show_start
from sparkloom.cli.options import AnyProfile, Context, Inventory, Json, Overrides, Profiles, Release, Verbose
from sparkloom.judge.start import ORDER, WILL_NOT

if TYPE_CHECKING:
    from sparkloom.judge.capacity.verdict import Asked

DEFAULT_CONTEXT = 32768  # of a session whose length is not told


def lint(
    profiles: Profiles = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    inventory: Inventory = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    linted = linting.lint(profiles or [], inventory, overrides or [], engine_version)
    show.out(linted.as_list(), json, lambda _: _linted(linted, verbose))
    show.problems(problem for _, problem in linted.unusable)
    raise typer.Exit(linted.exit_code)


def plan(
    profile: AnyProfile,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    verbose: Verbose = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="show formula and origin of every number, flag and variable")
    ] = False,
    sessions: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=4096,
            metavar="N",
            help="concurrent conversations: predict fit and time to first token",
        ),
    ] = None,
    context: Context = None,
    prefix_hit: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.999,
            metavar="SHARE",
            help="share of a prompt that the prefix cache already has",
        ),
    ] = 0.0,
    first: Annotated[
        bool, typer.Option("--first", help="if several profiles match, take the first in the list")
    ] = False,
    json: Json = False,
) -> None:
    from sparkloom.cli import show_plan

    asked = _asked(sessions, context, prefix_hit)
    told = partial(case.plan, inventory=inventory, sessions=asked, overrides=overrides or [], release=engine_version)
    planned = cache(told)  # one that is chosen from a list was planned for the list
    data = planned(chosen(profile, first, json, planned))
    show.out(data, json, lambda shown: show_plan.plan(shown, explain, verbose))
    crowded = data.get("sessions", {}).get("verdict") == "does-not-fit"
    raise typer.Exit(1 if crowded or data["start"]["verdict"] == WILL_NOT else 0)


def _asked(count: int | None, context: int | None, prefix_hit: float) -> Asked | None:
    from sparkloom.judge.capacity.verdict import Asked

    if count is None and context is None:
        if prefix_hit:
            raise typer.BadParameter("says something about --sessions and --context, and neither is given")
        return None
    return Asked(count or 1, context or DEFAULT_CONTEXT, prefix_hit)


def diagnose(
    logs: Annotated[list[Path], typer.Argument(help="engine or NCCL logs; - is standard input")], json: Json = False
) -> None:
    from sparkloom.judge import diagnose as diagnosis

    result = diagnosis.diagnose_files(logs)
    show.out(result, json, _diagnosis)
    raise typer.Exit(1 if result["matches"] else 0)


def _linted(linted: linting.Linted, verbose: bool) -> None:
    terminal = show.console()
    count = show_findings.listed(terminal, linted.findings, verbose)
    show_start.assumed(terminal, linted.assumed)
    unread = len({name for name, _ in linted.unusable} & set(linted.profiles))
    judged = len(linted.profiles) - unread
    parts = [f"{amount.of(judged, 'profile')}: {count} ({linted.rules})"] if judged else []
    parts += [f"{amount.of(unread, 'profile')} could not be judged: unusable, as stderr says"] if unread else []
    if any(name == linting.LIST for name, _ in linted.unusable):
        parts += ["the list `serve:` is unusable, as stderr says"]
    colour = show.COLOURS["warning" if linted.findings or linted.unusable else "ok"]
    show.paragraph(terminal, "; ".join(parts), style=f"bold {colour}")


def _diagnosis(data: dict[str, Any]) -> None:
    terminal = show.console()
    for match in data["matches"]:
        after = match["followed_from"]
        name = (f"then {match['rule']}", "bold") if after else (match["rule"], "bold red")
        terminal.print(show.coloured(name, f" (line {match['line_number']}{_times(match)}): ", match["why"]))
        if not after:
            show.paragraph(terminal, f"seen: {match['line']}", indent=4, style="dim")
            show.paragraph(terminal, f"fix: {match['fix']}", indent=4)
    for known in data["noise"]:
        terminal.print(f"means nothing: {known['noise']}{_times(known)}: {known['why']}", style="dim")
    if data["lines"]:
        begins = "if that is not all," if data["matches"] else "no known cause;"
        terminal.print(f"{begins} the lines that matter:")
        for line in data["lines"]:
            show.paragraph(terminal, line, indent=4)
        terminal.print("To report it: these lines, the image, `sparkloom argv PROFILE`.")
        terminal.print("To teach it to `diagnose`: docs/write-a-rule.md.")
    elif not data["matches"]:
        terminal.print("no known cause, and no line of a failure")


def _times(known: dict[str, Any]) -> str:
    return f", {known['count']} times" if known["count"] > 1 else ""


Planned = Callable[[str], dict[str, Any]]


def chosen(text: str, first: bool, json: bool, planned: Planned) -> str:
    """The profile that is meant. Where nobody says which, they are listed, and the name stays refused."""
    try:
        return names.exact(text)
    except names.Ambiguous as refused:
        rows = sorted((_row(name, planned) for name in refused.names), key=_best_first)
        if json and not first:
            show.problems(refused.problems)
            show.unusable(refused.problems, candidates=rows)
            raise typer.Exit(2) from None
        if not first:
            show.out(rows, False, _choices)
        given = "1" if first else _typed(len(rows))
        if given == "":  # the list stands above it
            raise typer.Exit(2) from None
        meant = int(given) if given and given.isdecimal() else 0
        if not 1 <= meant <= len(rows):
            raise
        show.complain(f"{text}: {rows[meant - 1]['name']}\n")
        return str(rows[meant - 1]["name"])


def _row(name: str, planned: Planned) -> dict[str, Any]:
    try:
        data = planned(name)
    except InputError as error:
        return {"name": name, "verdict": WILL_NOT, "why": error.problems[0].message, "n1": None, "measured": False}
    measured = (data["speed"]["measured"] or {}).get("1")
    n1 = data["speed"]["predicted"]["1"] if measured is None else measured
    return {"name": name, **data["start"], "n1": n1, "measured": measured is not None}


def _best_first(row: dict[str, Any]) -> tuple[int, float]:
    return ORDER.index(row["verdict"]), -(row["n1"] or 0.0)


def _choices(rows: list[dict[str, Any]]) -> None:
    """Each on one line of 80 columns; a speed that nobody measured carries the sign."""
    told = []
    for at, row in enumerate(rows, 1):
        sign = SIGN if row["n1"] and not row["measured"] else ""
        told.append((f"{at:>2} {row['name']}", row["verdict"], f"{sign}{show.number(row['n1'])}"))
    show.table(("   profile", "", "n1>"), told)


def _typed(count: int) -> str | None:
    """What a person at a terminal types: the number of one, or nothing for none of them."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    show.complain(f"which one (1 to {count}, Enter for none)? ")
    return sys.stdin.readline().strip()
