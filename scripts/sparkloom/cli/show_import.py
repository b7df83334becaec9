"""An import on one screen: what it is, whether it starts and fits, what it was not understood of, what to do next."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base import amount
from sparkloom.base.assumption import SIGN
from sparkloom.base.visible import cut
from sparkloom.cli import show_findings, show_start
from sparkloom.cli.show import COLOURS, coloured, console, number, paragraph
from sparkloom.judge.flags import UNDECIDED

if TYPE_CHECKING:
    from rich.console import Console

ALIKE = 3  # entries of the remainder with one reason that are shown; --json has all
PLAIN = (
    "rank 0 listens",
    "the endpoint has",
    "each rank's pod",
    "how somebody's",
    "every rank has",
    "Sparkloom decides",
)


def taken(data: dict[str, Any], file: str, output: Path | None, verbose: bool = False) -> None:
    terminal, verdict = console(), data["verdict"]
    _headline(terminal, data, verdict)
    _speed(terminal, verdict, show_start.sign(data["assumed"], "facts"))
    _command(terminal, verdict["command"])
    _remainder(terminal, file, data["remainder"])
    terminal.print()
    shown = [finding for finding in verdict["findings"] if verbose or finding["severity"] != "info"]
    terminal.print(show_findings.listed(terminal, shown, verbose), style="bold")
    if remarks := len(verdict["findings"]) - len(shown):
        more = f"and {amount.of(remarks, 'remark')}, nothing against it: -v shows more"
        paragraph(terminal, more, style="dim")
    show_start.assumed(terminal, show_start.given(data["assumed"]))
    _next(terminal, data, verdict, output)


def _headline(terminal: Console, data: dict[str, Any], verdict: dict[str, Any]) -> None:
    profile, parser = data["profile"], verdict["parser"]
    parallel = profile.get("launch", {}).get("parallel", {})
    copies = f", dp {parallel['dp']}" if parallel.get("dp") else ""
    ranks = f"tp {parallel.get('tp', 1)}, pp {parallel.get('pp', 1)}{copies}"
    show_start.head(terminal, profile["model"]["id"], data["start"])
    release = f"{show_start.sign(data['assumed'], 'release')}{parser['release']}"
    sparks = f" {release} on {amount.of(parallel['nodes'], 'Spark')}, {ranks}" if parallel else ""
    where = f"{parser['engine']}{sparks}"
    told = coloured(where, "; ", _taken(profile, verdict))
    paragraph(terminal, told, indent=2)
    form = f"{data['form']}; release: {parser['how']}" if parser["sure"] else data["form"]
    paragraph(terminal, form, indent=2, style="dim")
    _memory(terminal, verdict)


def _taken(profile: dict[str, Any], verdict: dict[str, Any]) -> tuple[str, str]:
    """What the release's own parser says, and of how many words it cannot."""
    parser, undecided = verdict["parser"], sum(one["rule"] == UNDECIDED for one in verdict["findings"])
    if parser["accepts"] is None:
        return "not judged by its parser", COLOURS["warning"]
    if not parser["accepts"]:
        return "its parser refuses it", COLOURS["error"]
    if undecided:
        return f"its parser may refuse {amount.of(undecided, 'flag')}", COLOURS["warning"]
    unknown = len(profile["engine"].get("fork", {}).get("flags", ()))
    if unknown:
        return f"its parser takes all but {amount.of(unknown, 'flag')}", COLOURS["warning"]
    return "its parser takes it", COLOURS["ok"]


def _memory(terminal: Console, verdict: dict[str, Any]) -> None:
    """What is said of it, and of whose facts."""
    paragraph(terminal, show_start.memory(verdict["fits"], verdict["reason"]), indent=2, style="dim")
    if facts := verdict["facts"]:
        sign = "" if facts["sure"] else f"{SIGN} "
        paragraph(terminal, f"facts: {sign}{facts['source']}", indent=2, style="dim")


def _speed(terminal: Console, verdict: dict[str, Any], sign: str) -> None:
    speed = verdict["plan"].get("speed")
    if not speed:
        return
    limits, rates = verdict["plan"]["limits"], speed["predicted"]
    told = []
    if rates.get("1") is not None:
        one, eight = number(rates["1"]), number(rates.get("8"))
        told.append(f"predicted {sign}{one} tok/s at one request, {sign}{eight} at eight")
    if limits.get("max_running_requests") is not None:
        told.append(f"{limits['max_running_requests']:,} requests at once")
    if told:
        paragraph(terminal, "; ".join(told), indent=2)
    if verdict["plan"].get("change"):
        paragraph(terminal, f"smallest change that fits: {verdict['plan']['change']}", indent=2)


def _command(terminal: Console, command: dict[str, Any]) -> None:
    if not command:
        return
    parts = [f"{name} {was} -> {now}" for name, (was, now) in command["changed"].items()]
    parts += [f"{name} {value} left out" for name, value in command["left_out"].items()]
    told = "; ".join(parts) if parts else "every flag of the source, as it stands there"
    added = f"; Sparkloom adds {', '.join(command['added'])}" if command["added"] else ""
    paragraph(terminal, f"command: {told}{added}", indent=2)


def _remainder(terminal: Console, file: str, remainder: list[dict[str, str]]) -> None:
    if not remainder:
        return
    counts = Counter(left["why"] for left in remainder)
    place = re.compile(rf"^{re.escape(file)}:(?=\d+: )")  # the one file that was named
    reasons = sorted(counts, key=lambda why: why.startswith(PLAIN))
    terminal.print()
    paragraph(terminal, f"not in the profile ({len(remainder)})", style="bold")
    for why in reasons:
        alike = [place.sub("line ", left["what"]) for left in remainder if left["why"] == why]
        more = f", and {len(alike) - ALIKE} more" if len(alike) > ALIKE else ""
        shown = ", ".join(cut(what, 96 // min(len(alike), ALIKE)) for what in alike[:ALIKE])
        style = "dim" if why.startswith(PLAIN) else ""
        paragraph(terminal, f"{shown}{more}: {why}", indent=2, style=style)


def _next(terminal: Console, data: dict[str, Any], verdict: dict[str, Any], output: Path | None) -> None:
    name = str(output) if output else f"{data['name']}.yml"
    if output is None:
        paragraph(terminal, f"-o {name} writes the profile", style="dim")
    if verdict["facts"] and verdict["parser"]["accepts"] is not None:
        paragraph(terminal, f"then `sparkloom plan {name} --explain`", style="dim")
