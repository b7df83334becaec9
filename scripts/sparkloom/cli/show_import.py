"""An import on one screen: what it is, whether it starts and fits, what it was not understood of, what to do next."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.cli import show_findings
from sparkloom.cli.show import COLOURS, console, number, paragraph

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


def taken(data: dict[str, Any], output: Path | None, verbose: bool = False) -> None:
    terminal, verdict = console(), data["verdict"]
    _headline(terminal, data, verdict)
    _facts(terminal, verdict)
    _speed(terminal, verdict)
    _command(terminal, verdict["command"])
    _unknown(terminal, verdict["unknown"])
    _remainder(terminal, data["remainder"])
    terminal.print()
    shown = [finding for finding in verdict["findings"] if verbose or finding["severity"] != "info"]
    terminal.print(show_findings.listed(terminal, shown, verbose), style="bold")
    if remarks := len(verdict["findings"]) - len(shown):
        paragraph(terminal, f"and {remarks} remark(s) that speak against nothing: -v shows them", style="dim")
    _next(terminal, data, verdict, output)


def _headline(terminal: Console, data: dict[str, Any], verdict: dict[str, Any]) -> None:
    from rich.text import Text

    profile, parser = data["profile"], verdict["parser"]
    parallel = profile.get("launch", {}).get("parallel", {})
    ranks = f"tp {parallel.get('tp', 1)}, pp {parallel.get('pp', 1)}" + (
        f", dp {parallel['dp']}" if parallel.get("dp") else ""
    )
    where = f"{parser['engine']} {parser['release']} on {parallel.get('nodes', '?')} Spark(s), {ranks}"
    told = Text.assemble(
        (profile["model"]["id"], "bold"), "  ", where, "  ", _taken(profile, parser), "; ", _fits(verdict)
    )
    paragraph(terminal, told)
    paragraph(
        terminal, f"{data['form']}; release: {parser['how']}" if parser["sure"] else data["form"], indent=2, style="dim"
    )
    if verdict["reason"] and not verdict["reason"].startswith("unknown"):
        paragraph(terminal, verdict["reason"], indent=2, style="dim")


def _taken(profile: dict[str, Any], parser: dict[str, Any]) -> tuple[str, str]:
    """What the release's own parser says, and of how many words it cannot."""
    if parser["accepts"] is None:
        return "not judged by its parser", COLOURS["warning"]
    if not parser["accepts"]:
        return "its parser refuses it", COLOURS["error"]
    unknown = len(profile["engine"].get("fork", {}).get("flags", ()))
    if unknown:
        return f"its parser takes all but {unknown} flag{'s' * (unknown > 1)}", COLOURS["warning"]
    return "its parser takes it", COLOURS["ok"]


def _fits(verdict: dict[str, Any]) -> tuple[str, str]:
    if verdict["reason"].startswith("unknown"):
        return f"fit {verdict['reason']}", COLOURS["warning"]
    if verdict["fits"] and not verdict["facts"]["sure"]:
        return "should fit: its facts are an estimate", COLOURS["warning"]
    said = {True: ("fits", COLOURS["ok"]), False: ("does not fit", COLOURS["error"])}
    return said.get(verdict["fits"], ("fit unknown", COLOURS["warning"]))


def _unknown(terminal: Console, unknown: list[dict[str, str]]) -> None:
    if unknown:
        terminal.print()
        paragraph(terminal, f"not known here ({len(unknown)})", style="bold")
    for one in unknown:
        paragraph(terminal, f"{one['what']}: {one['why']}", indent=2)


def _facts(terminal: Console, verdict: dict[str, Any]) -> None:
    facts = verdict["facts"]
    if facts is None:
        return
    doubt = "" if facts["sure"] else f"; an estimate: {facts['doubt']}"
    paragraph(terminal, f"facts: {facts['source']}{doubt}", indent=2, style="dim")


def _speed(terminal: Console, verdict: dict[str, Any]) -> None:
    speed = verdict["plan"].get("speed")
    if not speed:
        return
    limits, rates = verdict["plan"]["limits"], speed["predicted"]
    told = []
    if rates.get("1") is not None:
        told.append(f"predicted {number(rates['1'])} tok/s at one request, {number(rates.get('8'))} at eight")
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
    paragraph(terminal, f"command: {told}" + _added(command["added"]), indent=2)


def _added(added: dict[str, str]) -> str:
    return f"; Sparkloom adds {', '.join(added)}" if added else ""


def _remainder(terminal: Console, remainder: list[dict[str, str]]) -> None:
    if not remainder:
        return
    counts = Counter(left["why"] for left in remainder)
    reasons = sorted(counts, key=lambda why: why.startswith(PLAIN))
    terminal.print()
    paragraph(terminal, f"not in the profile ({len(remainder)})", style="bold")
    for why in reasons:
        alike = [left["what"] for left in remainder if left["why"] == why]
        more = f", and {len(alike) - ALIKE} more" if len(alike) > ALIKE else ""
        shown = ", ".join(_short(what, 96 // min(len(alike), ALIKE)) for what in alike[:ALIKE])
        style = "dim" if why.startswith(PLAIN) else ""
        paragraph(terminal, f"{shown}{more}: {why}", indent=2, style=style)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 24)] + "..."


def _next(terminal: Console, data: dict[str, Any], verdict: dict[str, Any], output: Path | None) -> None:
    name = str(output) if output else f"{data['name']}.yml"
    if output is None:
        paragraph(terminal, f"-o {name} writes the profile", style="dim")
    if verdict["facts"] and verdict["parser"]["accepts"] is not None:
        paragraph(terminal, f"then `sparkloom plan {name} --explain`", style="dim")
