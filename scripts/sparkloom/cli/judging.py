"""What speaks against a profile, whether it fits, and why a start failed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.cli import linting, show, show_findings, show_plan
from sparkloom.cli.options import Inventory, Json, Overrides, Profile, Profiles, Release
from sparkloom.judge import diagnose as diagnosis


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
    json: Json = False,
) -> None:
    data = case.plan(profile, inventory, overrides=overrides or [], release=engine_version)
    show.out(data, json, lambda shown: show_plan.plan(shown, explain))
    raise typer.Exit(1 if data["fits"] is False or any(f["severity"] == "error" for f in data["findings"]) else 0)


def diagnose(
    logs: Annotated[list[Path], typer.Argument(help="engine or NCCL logs; - is standard input")], json: Json = False
) -> None:
    result = diagnosis.diagnose_files(logs)
    show.out(result, json, _diagnosis)
    raise typer.Exit(1 if result["matches"] else 0)


def _linted(linted: linting.Linted) -> None:
    terminal = show.console()
    count = show_findings.listed(terminal, linted.findings)
    unread = len({name for name, _ in linted.unusable})
    judged = len(linted.profiles) - unread
    parts = [f"{judged} profile(s): {count}"] if judged else []
    parts += [f"{unread} profile(s) could not be judged: unusable, as stderr says"] if unread else []
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
