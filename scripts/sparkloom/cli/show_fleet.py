"""A fleet's plan on one screen: each Spark as a bar of memory with a letter for every group, then the groups."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from sparkloom.base import amount
from sparkloom.cli import memory_bar, show_findings
from sparkloom.cli.show import COLOURS, coloured, console, paragraph, window
from sparkloom.onnode.now import bars

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

CELLS, FEWEST = 32, 12  # of a bar
SHADES = ("blue", "cyan", "magenta", "yellow", "green", "red")
LEGEND = "each Spark's memory: h the host, a letter a group, - its alone, . free to share, g kept by the memory guard"
LOOKS = {"host": ("h", "dim"), "own": ("-", "dim"), "free": (".", COLOURS["ok"]), "guard": ("g", "dim")}
WORDS = {"new": "new", "stays": "stays", "moves": "moves", "changes": "starts anew"}


def plan(data: dict[str, Any]) -> None:
    terminal = console()
    _headline(terminal, data)
    if data["groups"] or not data["unplaced"]:
        _sparks(terminal, data)
        _groups(terminal, data)
    else:
        _asked(terminal, data)
    _remarks(terminal, data["findings"])


def _remarks(terminal: Console, findings: list[dict[str, Any]]) -> None:
    """What speaks against a profile; remarks would fill the screen, and `lint` has them."""
    said = [finding for finding in findings if finding["rule"] != "fleet-does-not-fit"]
    serious = [finding for finding in said if finding["severity"] != "info"]
    if serious:
        terminal.print()
        show_findings.listed(terminal, serious)
    elif said:
        paragraph(terminal, f"{len(said)} remarks on these profiles: sparkloom lint NAME", style="dim")


def _headline(terminal: Console, data: dict[str, Any]) -> None:
    colour = {True: COLOURS["ok"], False: COLOURS["error"]}.get(data["fits"], COLOURS["warning"])
    verdict = {True: "fits", False: "does not fit"}.get(data["fits"], "uncertain")
    count, sparks = len(data["groups"] or data["unplaced"]), len(data["nodes"])
    text = f"  {amount.of(count, 'group')} on {amount.of(sparks, 'Spark')}"
    if data["fits"] is not False:
        idle = sum(not node["groups"] for node in data["nodes"])
        text += f", {idle} of them free" if idle else ""
    paragraph(terminal, coloured((data["cluster"], "bold"), text, "  ", (verdict, colour)))
    if data["reason"]:
        paragraph(terminal, data["reason"], indent=2, style="dim" if data["fits"] is None else "")


def _sparks(terminal: Console, data: dict[str, Any]) -> None:
    signs = letters(data["groups"])
    widest = max(len(node["name"]) for node in data["nodes"])
    room = (window(terminal) or 120) - widest - 46
    cells = max(FEWEST, min(CELLS, room))
    paragraph(terminal, LEGEND, style="dim")
    for node in data["nodes"]:
        left = f", {node['left_gib']:.1f} left" if node["groups"] and node["left_gib"] else ""
        paragraph(terminal, spark(node, signs, widest, cells) + left)


def spark(node: dict[str, Any], signs: dict[str, tuple[str, str]], widest: int, cells: int) -> Text:
    """Its memory as a bar, and how much of it whose ranks take."""
    drawn = [(sign * count, style) for sign, count, style in bar(node, signs, cells)]
    used = sum(float(each["gib"] or 0) for each in bars.counted(node["groups"]))
    ranks = " ".join(_ranks(node["groups"], signs))
    told = f"{used:5.1f} of {node['usable_gib']:g} GiB  {ranks}" if node["groups"] else "free"
    return coloured(f"  {node['name']:<{widest}}  ", *drawn, f"  {told}")


def _ranks(here: list[dict[str, Any]], signs: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Letter and rank; those that take turns behind one another, as A0/B0."""
    for first in bars.counted(here):
        turn = first.get("turns") or ""
        mates = [one for one in here if (one["turns"] == turn if turn else one is first)]
        yield "/".join(f"{signs[one['group']][0]}{one['rank']}" for one in mates)


def letters(groups: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Of each group its letter and colour, in the list's order."""
    return {
        group["name"]: (ascii_uppercase[number % len(ascii_uppercase)], SHADES[number % len(SHADES)])
        for number, group in enumerate(groups)
    }


def bar(node: dict[str, Any], signs: dict[str, tuple[str, str]], cells: int) -> list[tuple[str, int, str]]:
    """A Spark's memory: each part's sign, how often, and its style."""
    found = bars.parts(node)
    looks = [signs[part.group] if part.what == "group" else LOOKS[part.what] for part in found]
    counts = memory_bar.shares([part.gib for part in found], cells)
    return [(sign, max(0, count), style) for (sign, style), count in zip(looks, counts, strict=True)]


def _groups(terminal: Console, data: dict[str, Any]) -> None:
    signs = letters(data["groups"])
    for group in data["groups"]:
        letter, shade = signs[group["name"]]
        rails = f", function {group['vf']} of each rail" if group["vf"] is not None else ""
        share = f"{group['fraction']:g} of " if group["fraction"] is not None else ""
        was = f" from {', '.join(group['was'])}" if group["state"] == "moves" else ""
        name = "" if group["name"] == group["profile"] else f": {group['profile']}"
        head = (f"{letter} ", shade), (group["name"], "bold"), name
        where = f" on {share}{', '.join(group['nodes'])}{rails}; asked for as {group['alias']}; "
        where += _demand(group, data["groups"])
        colour = COLOURS["warning" if group["state"] in ("moves", "changes") else "ok"]
        paragraph(terminal, coloured(*head, where, (f"{WORDS[group['state']]}{was}", colour)))
    for name in data["gone"]:
        paragraph(terminal, coloured("  ", (name, "bold"), " is in the list no more: stops"))


def _demand(group: dict[str, Any], groups: list[dict[str, Any]]) -> str:
    """When it stops by itself, and whom it has its Sparks with by turns."""
    if group["idle_minutes"] is None:
        return ""
    mates = [one["name"] for one in groups if group["turns"] and one["turns"] == group["turns"] and one is not group]
    turn = f", in turn with {', '.join(mates)}" if mates else ""
    return f"on demand, stops after {group['idle_minutes']} min without a request{turn}; "


def _asked(terminal: Console, data: dict[str, Any]) -> None:
    """Nothing is placed: what was asked for, and what would fit."""
    for group in data["unplaced"]:
        share = f", {group['fraction']:g} of each" if group["fraction"] is not None else ""
        paragraph(terminal, f"{group['name']}: {amount.of(group['count'], 'Spark')}{share}", indent=2)
    if data["advice"]:
        paragraph(terminal, "each of these would make it fit:", style="bold")
    for text in data["advice"]:
        paragraph(terminal, text, indent=2)
