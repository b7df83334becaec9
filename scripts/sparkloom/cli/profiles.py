"""What profiles there are, and what one makes of an inventory: a rank's command line and environment, the rails."""

from __future__ import annotations

import shlex
from typing import Any

from sparkloom import case
from sparkloom.cli import show
from sparkloom.cli.options import Inventory, Json, Overrides, Profile, Rank, Release
from sparkloom.judge import profile_status


def profiles(json: Json = False) -> None:
    show.out(profile_status.listing(), json, _profiles)


def argv(
    profile: Profile,
    rank: Rank,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    json: Json = False,
) -> None:
    shown = case.rank(profile, rank, inventory, overrides=overrides or [], release=engine_version)
    show.out(list(shown.argv), json, _words)


def env(
    profile: Profile,
    rank: Rank,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    json: Json = False,
) -> None:
    shown = case.rank(profile, rank, inventory, overrides=overrides or [], release=engine_version)
    show.out({variable.name: variable.value for variable in shown.env}, json, _environment)


def _profiles(listing: list[dict[str, Any]]) -> None:
    rows = show.table("profile", "engine", "nodes>", "tp>", "ep>", "status", "n1>", "n4>", "n8>")
    rows.columns[0].no_wrap = True
    for item in listing:
        engine = f"{item['engine']} {item['release']}"
        speeds = [show.number(item[key]) for key in ("n1", "n4", "n8")]
        rows.add_row(
            item["name"], engine, str(item["nodes"]), str(item["tp"]), str(item["ep"]), item["status"], *speeds
        )
    show.console().print(rows)
    show.console().print(
        "\ntok/s at 1, 4 and 8 requests at once, from each profile's best evidence; `sparkloom plan NAME` explains one"
    )


def _words(words: list[str]) -> str:
    """One flag per line, ready to paste."""
    lines, current = [], ""
    for word in words:
        if word.startswith("--"):
            lines.append(current)
            current = "  " + shlex.quote(word)
        else:
            current = f"{current} {shlex.quote(word)}" if current else shlex.quote(word)
    return " \\\n".join([*lines, current])


def _environment(variables: dict[str, str]) -> str:
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
