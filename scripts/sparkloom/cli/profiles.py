"""What profiles there are, and what one makes of an inventory: a rank's command line and environment, the rails."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.cli import show, show_start
from sparkloom.cli.judging import DEFAULT_CONTEXT
from sparkloom.cli.options import Context, Inventory, Json, Overrides, Profile, Rank, Release
from sparkloom.judge import profile_status

SPEEDS = ("n1", "n4", "n8")


def profiles(
    fits: Annotated[
        bool,
        typer.Option("--fits", help="only profiles that fit, fastest first: measured, then predicted"),
    ] = False,
    nodes: Annotated[int | None, typer.Option("--nodes", min=1, max=8, help="at most this many Sparks")] = None,
    context: Context = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, max=4096, help="conversations at once (default: 1)")
    ] = None,
    inventory: Inventory = None,
    json: Json = False,
) -> None:
    if not fits and nodes is context is concurrency is None:
        show.out(profile_status.listing(), json, _profiles)
        return
    from sparkloom.judge.capacity.sessions import Asked

    asked = Asked(concurrency or 1, context or DEFAULT_CONTEXT)
    ranked = case.ranking(inventory, asked=asked, nodes=nodes)
    show.out(ranked, json, lambda shown: _ranking(shown, asked.count, asked.context))
    raise typer.Exit(0 if ranked else 1)


def argv(
    profile: Profile,
    rank: Rank,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    json: Json = False,
) -> None:
    judged = case.judge(profile, inventory, overrides=overrides or [], release=engine_version)
    show.out(list(case.rank_of(judged, rank).argv), json, _words)
    show_start.said(judged.assumed)


def env(
    profile: Profile,
    rank: Rank,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    json: Json = False,
) -> None:
    judged = case.judge(profile, inventory, overrides=overrides or [], release=engine_version)
    shown = {variable.name: variable.value for variable in case.rank_of(judged, rank).env}
    show.out(shown, json, _environment)
    show_start.said(judged.assumed)


def _profiles(listing: list[dict[str, Any]]) -> None:
    terminal = show.console()
    wide = show.table("profile", "engine", "nodes>", "tp>", "ep>", "status", "n1>", "n4>", "n8>")
    short = show.table("profile", "on", "n1>", "n4>", "n8>", padding=(0, 1, 0, 0))
    for item in listing:
        engine = f"{item['engine']} {item['release']}"
        split = [str(item[key]) for key in ("nodes", "tp", "ep")]
        wide.add_row(item["name"], engine, *split, item["status"], *_speeds(item))
        whole = (str(round(item[key])) if (item[key] or 0) >= 100 else show.number(item[key]) for key in SPEEDS)
        short.add_row(item["name"], f"{item['nodes']} {item['engine']}", *whole)
    if not show.first_that_fits(terminal, wide, short):
        for item in listing:
            show.paragraph(terminal, item["name"])
            show.paragraph(
                terminal, f"{item['engine']} {item['release']}, {item['nodes']} node(s)", indent=2, style="dim"
            )
            show.paragraph(terminal, f"{' '.join(_speeds(item))} tok/s, {item['status']}", indent=2, style="dim")
    said = "tok/s at 1, 4 and 8 requests at once, from each profile's best evidence; `sparkloom plan NAME` explains one"
    terminal.print()
    show.paragraph(terminal, f"{said}, and a part of a name will do")


def _ranking(ranked: list[dict[str, Any]], count: int, context: int) -> None:
    terminal = show.console()
    wide = show.table("profile", "on", "tok/s measured>", "predicted>", "first token s>", "room>", "verdict")
    short = show.table("profile", "on", "tok/s>", "verdict", padding=(0, 1, 0, 0))
    for item in ranked:
        span = item["interval"]
        predicted = "-" if span is None else f"{show.number(span[0])} - {show.number(span[1])}"
        first = f"{item['first_token_s'][0]:.0f} - {item['first_token_s'][1]:.0f}"
        measured = show.number(item["measured_tok_s"])
        if item["measured_at"] not in (None, count):
            measured += f" at {item['measured_at']}"
        where = f"{item['nodes']} {item['engine']}"
        wide.add_row(item["name"], where, measured, predicted, first, str(item["room"]), item["verdict"])
        short.add_row(item["name"], where, _speed(item), item["verdict"])
    if ranked and not show.first_that_fits(terminal, wide, short):
        for item in ranked:
            show.paragraph(terminal, item["name"])
            told = f"{item['nodes']} {item['engine']}, {_speed(item)} tok/s, {item['verdict']}"
            show.paragraph(terminal, told, indent=2, style="dim")
    asked = f"{count} conversation(s) of {context:,} tokens"
    said = f"{asked} at once; `sparkloom plan NAME --sessions {count} --context {context}` tells more of one"
    if ranked:
        terminal.print()
    show.paragraph(terminal, said if ranked else f"no shipped profile has room for {asked}")


def _speed(item: dict[str, Any]) -> str:
    """Measured, else between which figures it is expected."""
    if item["measured_tok_s"] is not None or item["interval"] is None:
        return show.number(item["measured_tok_s"])
    return f"{item['interval'][0]:.0f}-{item['interval'][1]:.0f}"


def _speeds(item: dict[str, Any]) -> list[str]:
    return [show.number(item[key]) for key in SPEEDS]


def _words(words: list[str]) -> None:
    """One flag per line, ready to paste, however wide."""
    lines, current = [], ""
    for word in words:
        if word.startswith("--"):
            lines.append(current)
            current = "  " + shlex.quote(word)
        else:
            current = f"{current} {shlex.quote(word)}" if current else shlex.quote(word)
    show.say(" \\\n".join([*lines, current]) + "\n")


def _environment(variables: dict[str, str]) -> None:
    show.say("".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items()))
