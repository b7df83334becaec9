"""What speaks against a profile, whether it fits, and why a start failed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparkloom import case
from sparkloom.cli import linting, show, show_findings
from sparkloom.cli.options import Context, Inventory, Json, Overrides, Profile, Profiles, Release

if TYPE_CHECKING:
    from sparkloom.judge.capacity.sessions import Asked

DEFAULT_CONTEXT = 32768  # of a session whose length is not told


def lint(
    profiles: Profiles = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    inventory: Inventory = None,
    json: Json = False,
) -> None:
    linted = linting.lint(profiles or [], inventory, overrides or [], engine_version)
    show.out(linted.as_list(), json, lambda _: _linted(linted))
    show.problems(problem for _, problem in linted.unusable)
    raise typer.Exit(linted.exit_code)


def plan(
    profile: Profile,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="formula and origin of every number, flag and variable")
    ] = False,
    sessions: Annotated[
        int | None,
        typer.Option(
            "--sessions",
            min=1,
            max=4096,
            metavar="N",
            help="number of conversations at once: do they fit, and how long to the first token",
        ),
    ] = None,
    context: Context = None,
    prefix_hit: Annotated[
        float,
        typer.Option(
            "--prefix-hit",
            min=0,
            max=0.999,
            metavar="SHARE",
            help="share of a prompt that the prefix cache already has",
        ),
    ] = 0.0,
    json: Json = False,
) -> None:
    from sparkloom.cli import show_plan

    asked = _asked(sessions, context, prefix_hit)
    data = case.plan(profile, inventory, sessions=asked, overrides=overrides or [], release=engine_version)
    show.out(data, json, lambda shown: show_plan.plan(shown, explain))
    refused = data["fits"] is False or data.get("sessions", {}).get("verdict") == "does-not-fit"
    raise typer.Exit(1 if refused or any(f["severity"] == "error" for f in data["findings"]) else 0)


def _asked(count: int | None, context: int | None, prefix_hit: float) -> Asked | None:
    from sparkloom.judge.capacity.sessions import Asked

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


def _linted(linted: linting.Linted) -> None:
    terminal = show.console()
    count = show_findings.listed(terminal, linted.findings)
    unread = len({name for name, _ in linted.unusable} & set(linted.profiles))
    judged = len(linted.profiles) - unread
    parts = [f"{judged} profile(s): {count}"] if judged else []
    parts += [f"{unread} profile(s) could not be judged: unusable, as stderr says"] if unread else []
    if any(name == linting.LIST for name, _ in linted.unusable):
        parts += ["the list `serve:` is unusable, as stderr says"]
    terminal.print("; ".join(parts), style="bold")


def _diagnosis(data: dict[str, Any]) -> None:
    from rich.text import Text

    terminal = show.console()
    for match in data["matches"]:
        terminal.print(Text.assemble((match["rule"], "bold red"), f": {match['why']}"))
        terminal.print(f"    seen: {match.get('line', '')}", style="dim")
        terminal.print(f"    fix: {match['fix']}")
    if not data["matches"]:
        terminal.print("no known cause; the most telling lines:")
        for line in data.get("lines", []):
            terminal.print(f"    {line}")
