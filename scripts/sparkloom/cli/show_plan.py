"""The plan on a terminal: whether it starts, memory, speed, what limits, what is launched; with --explain, why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sparkloom.base import amount
from sparkloom.cli import memory_bar, show_findings, show_start
from sparkloom.cli.show import COLOURS, console, number, paragraph, table

if TYPE_CHECKING:
    from rich.console import Console

LEVELS = ("1", "4", "8")  # requests at once


def plan(data: dict[str, Any], explain: bool, verbose: bool = False) -> None:
    terminal = console()
    _headline(terminal, data)
    memory_bar.draw(terminal, data["memory"], data["assumed"])
    _speed(terminal, data)
    _limits(terminal, data)
    if "sessions" in data:
        _sessions(terminal, data["sessions"])
    if explain:
        _figures(terminal, data)
    _launch(terminal, data["launch"], explain)
    show_findings.listed(terminal, data["findings"], verbose)
    show_start.assumed(terminal, show_start.given(data["assumed"]))


def _headline(terminal: Console, data: dict[str, Any]) -> None:
    show_start.head(terminal, data["profile"], data["start"])
    launch = data["launch"]
    release = f"{show_start.sign(data['assumed'], 'release')}{launch['release']}"
    where = f"{launch['engine']} {release} on {amount.of(len(launch['ranks']), 'node')} of '{data['cluster']}'"
    paragraph(terminal, where, indent=2, style="dim")
    for line in (show_start.memory(data["fits"], data["reason"]), *data["notes"]):
        paragraph(terminal, line, indent=2, style="dim")
    if data["change"]:
        paragraph(terminal, f"smallest change that fits: {data['change']}", indent=2)
    terminal.print()


def _speed(terminal: Console, data: dict[str, Any]) -> None:
    speed = data["speed"]
    shown = {"memory bound": speed["bound"], "expected ceiling": speed["ceiling"], "predicted": speed["predicted"]}
    rows = [_levels(name, values) for name, values in shown.items()]
    if spans := speed["interval"]:
        rows.append(("likely between", *(_span(spans.get(n)) for n in LEVELS)))
    rows.append(_levels("measured", speed["measured"] or {}))
    terminal.print()
    table(("tok/s at n requests", "1>", "4>", "8>"), rows)
    for n in speed["impossible"]:
        words = f"measured at n = {n} is beyond the memory bound: impossible"
        paragraph(terminal, words, indent=2, style=COLOURS["error"])
    for n in speed["above_ceiling"]:
        words = f"measured at n = {n} is above the expected ceiling: alike prompts wake few experts"
        paragraph(terminal, words, indent=2, style=COLOURS["warning"])


def _levels(name: str, values: dict[str, Any]) -> tuple[str, ...]:
    return name, *(number(values.get(n)) for n in LEVELS)


def _span(ends: list[float] | None) -> str:
    return f"{number(ends[0])} - {number(ends[1])}" if ends else ""


def _limits(terminal: Console, data: dict[str, Any]) -> None:
    terminal.print()
    paragraph(terminal, "what limits", style="bold")
    lines = _limiting(data["limits"], data["memory"]) if data["fits"] is not False else (data["reason"],)
    if data["fits"] is None:
        paragraph(terminal, "what is known as a range decides whether it starts; where it does:", indent=2)
    for line in lines:
        paragraph(terminal, line, indent=2)


def _sessions(terminal: Console, told: dict[str, Any]) -> None:
    terminal.print()
    verdict = {"fits": "fit", "uncertain": "uncertain"}.get(told["verdict"], "do not fit")
    paragraph(terminal, f"{amount.of(told['count'], 'session')} of {told['context']:,} tokens: {verdict}", style="bold")
    paragraph(terminal, told["reason"], indent=2)
    first = told["first_token_s"]
    words = {"cold": "first token, nothing cached", "warm": f"first token, {told['prefix_hit']:.0%} of it cached"}
    for name, said in words.items():
        if name in first:
            last = f"; the last of all {told['count']}: {_seconds(first[f'{name}_last_of_all'])}"
            line = f"{said}: {_seconds(first[name])}" + (last if told["count"] > 1 else "")
            paragraph(terminal, line, indent=2)
    if told["decode_tok_s"]:
        paragraph(terminal, f"then {_span(told['decode_tok_s'])} tok/s each, all at once and that deep", indent=2)
    for note in told["notes"]:
        paragraph(terminal, note, indent=2, style="dim")


def _seconds(ends: list[float]) -> str:
    return f"{number(ends[0])} to {number(ends[1])} s"


def _limiting(limits: dict[str, Any], memory: dict[str, Any]) -> Iterator[str]:
    running, by_state = limits.get("max_running_requests"), limits.get("state_requests")
    longest, full = limits.get("longest_request_tokens"), limits.get("full_context_requests")
    if running is not None and by_state is not None and by_state <= running:
        each = memory.get("state_slots_per_request")
        yield f"requests at once: {running:,}, by the state slots ({memory.get('state_slots')}, {each} per request)"
    elif running is not None:
        yield f"requests at once: {running:,}, by the engine's settings"
    if longest is not None and full == 0:
        yield f"longest request: {longest:,} tokens, by the KV cache"
    elif longest is not None:
        yield f"longest request: {longest:,} tokens, by the context length"
    if full and running and full < running:
        yield f"of that length at once: {full:,}, by the KV cache"
    for name, value in limits.items():
        if name.endswith("_floor"):
            yield f"{name.removesuffix('_floor')}: from {value} on it starts"


def _figures(terminal: Console, data: dict[str, Any]) -> None:
    """Every number of the plan, with how it was made and where that is from."""
    rows = []
    for section in ("memory", "limits"):
        for name, value in data[section].items():
            details = data["explain"].get(f"{section}.{name}", {})
            made = (str(details.get("formula", "")), str(details.get("origin", "")))
            rows.append((name.replace("_", " "), number(value, 2), *made))
    for name in ("bound", "ceiling", "predicted"):
        details = data["explain"].get(f"speed.{name}.1", {})
        value = (data["speed"].get(name) or {}).get("1")
        rows.append((f"{name}, n = 1", number(value), str(details.get("formula", "")), str(details.get("origin", ""))))
    terminal.print()
    table(("number", "value>", "how", "from"), rows)


def _launch(terminal: Console, launch: dict[str, Any], explain: bool) -> None:
    terminal.print()
    paragraph(terminal, f"image {launch['image']}", style="dim")
    if not explain:
        for rank in launch["ranks"]:
            addresses = ", ".join(f"{rail} {address}" for rail, address in rank["addresses"].items()) or "no rails"
            paragraph(terminal, f"rank {rank['rank']} on {rank['node']}: {addresses}", style="dim")
        paragraph(terminal, "`--explain` shows the origin of every flag, variable and number", style="dim")
        terminal.print()
        return
    rows = [
        ("--" + setting["name"].replace("_", "-"), str(setting["value"]), setting["why"], _origin(setting))
        for setting in launch["settings"]
    ]
    rows += [(name["name"], name["value"], name["why"], _origin(name)) for name in launch["ranks"][0]["env"]]
    table(("flag / variable", "value", "why", "from"), rows)


def _origin(value: dict[str, Any]) -> str:
    return str(value["where"] or value["origin"])
