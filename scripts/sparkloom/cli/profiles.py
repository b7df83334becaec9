"""What profiles there are, and what one makes of an inventory: a rank's command line and environment, the rails."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.base import amount
from sparkloom.cli import show, show_start
from sparkloom.cli.judging import DEFAULT_CONTEXT
from sparkloom.cli.options import Context, Inventory, Json, Overrides, Profile, Rank, Release
from sparkloom.judge import profile_status

SPEEDS = ("n1", "n4", "n8")
COLUMNS = ("profile", "Sparks>", "tok/s>", "fits", "at 8>", "age>", "first token s>", "room>", "engine", "more>")


def profiles(
    fits: Annotated[
        bool, typer.Option("--fits", help="only profiles that fit, fastest first: measured, then predicted")
    ] = False,
    nodes: Annotated[int | None, typer.Option(min=1, max=8, help="at most this many Sparks")] = None,
    context: Context = None,
    concurrency: Annotated[int | None, typer.Option(min=1, max=4096, help="conversations at once (default: 1)")] = None,
    inventory: Inventory = None,
    json: Json = False,
) -> None:
    if not fits and nodes is context is concurrency is None:
        show.out(profile_status.listing(), json, lambda shown: _profiles(shown, inventory))
        return
    from sparkloom.judge.capacity.verdict import Asked

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
    show.out({variable.name: variable.value for variable in case.rank_of(judged, rank).env}, json, _environment)
    show_start.said(judged.assumed)


def _profiles(listing: list[dict[str, Any]], inventory: Path | None) -> None:
    if show.window(show.console()):
        _of_the_site(listing, inventory)
        return
    rows = []
    for item in listing:
        split = (str(item[key]) for key in ("nodes", "tp", "ep"))
        speeds = (show.number(item[key]) for key in SPEEDS)
        rows.append((item["name"], f"{item['engine']} {item['release']}", *split, item["status"], *speeds))
    show.table(("profile", "engine", "nodes>", "tp>", "ep>", "status", "n1>", "n4>", "n8>"), rows)
    said = "tok/s at 1, 4 and 8 requests at once, from each profile's best evidence; `sparkloom plan NAME` explains one"
    show.say(f"\n{said}, and a part of a name will do\n")


def _of_the_site(listing: list[dict[str, Any]], inventory: Path | None) -> None:
    """A line for each model that fits there: its fastest launch, and how many others there are."""
    from sparkloom.judge.capacity.verdict import Asked

    site = case.cluster(inventory)
    ranked = case.ranking(site, asked=Asked(1, DEFAULT_CONTEXT))
    models: dict[str, list[dict[str, Any]]] = {}
    for item in ranked:
        models.setdefault(item["model"], []).append(item)
    _fastest(list(models.values()), dropped=("room>", "first token s>", "engine", "fits", "at 8>", "more>", "age>"))
    left = {item["name"] for item in listing} - {item["name"] for item in ranked}
    sparks = f"the {amount.of(len(site.nodes), 'Spark')} of '{site.name}'"
    said = f"What fits on {sparks}, fastest first. tok/s at one request: measured, and how old that is; or the span "
    said += "that is expected. `sparkloom profiles --fits` shows the other launches of a model (more), "
    show.words(f"\n{said}`sparkloom plan NAME` explains one, and a part of a name will do.\n")
    if left:
        show.words(f"Not on {sparks}: {', '.join(sorted(left))}\n")


def _fastest(launches: list[list[dict[str, Any]]], dropped: Sequence[str]) -> None:
    """Each launch, with those that are only counted, for a window."""
    names = COLUMNS if any(others for _, *others in launches) else COLUMNS[:-1]
    rows = []
    for item, *others in launches:
        known = ("yes" if item["verdict"] == "fits" else "unsure", show.number(item["n8"]), _age(item), _first(item))
        engine = f"{item['engine']} {item['release']}"
        row = (item["name"], str(item["nodes"]), _speed(item), *known, str(item["room"]), engine, str(len(others)))
        rows.append(row[: len(names)])
    show.table(names, rows, dropped)


def _ranking(ranked: list[dict[str, Any]], count: int, context: int) -> None:
    terminal = show.console()
    if ranked and show.window(terminal):
        _fastest([[item] for item in ranked], dropped=("engine", "at 8>", "room>", "first token s>", "age>"))
    elif ranked:
        names = ("profile", "on", "tok/s measured>", "predicted>", "first token s>", "room>", "verdict")
        show.table(names, map(partial(_ranked, count), ranked))
    asked = f"{amount.of(count, 'conversation')} of {context:,} tokens"
    said = f"{asked} at once; `sparkloom plan NAME --sessions {count} --context {context}` tells more of one"
    if ranked:
        terminal.print()
    show.paragraph(terminal, said if ranked else f"no shipped profile has room for {asked}")


def _ranked(count: int, item: dict[str, Any]) -> tuple[str, ...]:
    span = item["interval"]
    predicted = "-" if span is None else f"{show.number(span[0])} - {show.number(span[1])}"
    at = f" at {item['measured_at']}" if item["measured_at"] not in (None, count) else ""
    measured = show.number(item["measured_tok_s"]) + at
    where = f"{item['nodes']} {item['engine']}"
    return item["name"], where, measured, predicted, _first(item), str(item["room"]), item["verdict"]


def _first(item: dict[str, Any]) -> str:
    return f"{item['first_token_s'][0]:.0f} - {item['first_token_s'][1]:.0f}"


def _speed(item: dict[str, Any]) -> str:
    """Measured, else between which figures it is expected."""
    if item["measured_tok_s"] is not None or item["interval"] is None:
        return show.number(item["measured_tok_s"])
    return f"{item['interval'][0]:.0f}-{item['interval'][1]:.0f}"


def _age(item: dict[str, Any]) -> str:
    """Of a measured figure, in months: engines are released that often."""
    if item["measured_tok_s"] is None or item["date"] is None:
        return "-"
    year, month = map(int, item["date"].split("-")[:2])
    today = date.today()
    months = (today.year - year) * 12 + today.month - month
    return f"{months} mo" if months > 0 else "new"


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
