"""`sparkloom status --watch`: one screen that is drawn anew; a line each time where nobody looks at a terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base import amount
from sparkloom.cli import show, show_fleet
from sparkloom.cli.show import COLOURS
from sparkloom.onnode.now.groups import resting
from sparkloom.site import now

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Shown = dict[str, Any]
CELLS = 32  # of a bar
FURTHER = "    "  # before what is said of a group on lines of its own
LOOKS = {  # the colour of a group's state
    "serves": COLOURS["ok"], "starts": COLOURS["warning"], "wakes": COLOURS["warning"], "asleep": "dim",
    "incomplete": COLOURS["error"], "failed": COLOURS["error"], "stopped": "dim", "down": "dim", "gone": "dim",
}  # fmt: skip


def watch(inventory: Path | None, every: float, as_json: bool) -> bool:
    """Until somebody ends it; whether the last picture serves."""
    serves = False
    with suppress(KeyboardInterrupt), _shown(as_json) as draw:
        for shown in now.looks(inventory):
            serves = bool(shown["serving"])
            draw(shown)
            time.sleep(every)
    return serves


@contextmanager
def _shown(as_json: bool) -> Iterator[Callable[[Shown], None]]:
    if as_json:
        yield lambda shown: show.say(json.dumps(shown) + "\n")
        return
    terminal = show.console()
    if show.window(terminal) is None:
        yield lambda shown: show.say(line(shown) + "\n")
        return
    from rich.live import Live

    with Live(console=terminal, auto_refresh=False) as live:
        yield lambda shown: live.update(screen(terminal, shown), refresh=True)


def line(shown: Shown) -> str:
    """When, how much of it serves, how fast, and what is wrong."""
    wrong = []
    for one in shown["groups"]:
        if one["state"] not in ("serves", "asleep"):
            cause = f": {one['cause']}" if one["cause"] else ""
            wrong.append(f"{one['name']} {one['word']}{cause}")
    return f"{_at(shown)}  " + "; ".join([_head(shown), *wrong, *shown["problems"]])


def _at(shown: Shown) -> str:
    """When the cluster said so."""
    at = datetime.fromtimestamp(shown["at"], timezone.utc) if shown["at"] else None  # noqa: UP017 - as the others
    return at.isoformat(timespec="seconds") if at else "never seen"


def _head(shown: Shown) -> str:
    counted = [one for one in shown["groups"] if one["listed"] or one["ranks"]]
    up = sum(one["serving"] for one in counted)
    groups = amount.of(len(counted), "group")
    words = [f"{shown['site']}: {up} of {groups} serve{'s' * (up == 1)}{resting(counted)}"]
    if shown.get("tokens_per_second") is not None:
        words.append(f"{shown['tokens_per_second']:g} tok/s")
    if shown.get("running") is not None:
        words.append(f"{shown['running']:.0f} running, {shown['queued'] or 0:.0f} waiting")
    return ", ".join(words)


# --- the screen ---------------------------------------------------------------------------------------------------


def screen(terminal: Console, shown: Shown) -> Any:
    """A line of the window each; what is wrong may take more."""
    from rich.console import Group
    from rich.text import Text

    signs = show_fleet.letters(shown["groups"])
    lines = [show.coloured((_head(shown), "bold"), (f"  at {_at(shown)}", "dim"))]
    problems = [Text(problem, style=COLOURS["error"]) for problem in shown["problems"]]
    lines += problems
    if shown["nodes"]:
        lines.append(Text(show_fleet.LEGEND, style="dim"))
    lines += bars(terminal, shown)
    lines += [text for one in shown["groups"] for text in _group(one, signs)]
    lines += _rails(shown)
    for text in lines:
        text.no_wrap = text not in problems and not text.plain.startswith(FURTHER)
        text.overflow = "ellipsis" if text.no_wrap else "fold"
    return Group(*lines)


def bars(terminal: Console, shown: Shown) -> list[Text]:
    """The memory of each Spark."""
    signs = show_fleet.letters(shown["groups"])
    widest = max((len(node["name"]) for node in shown["nodes"]), default=0)
    cells = max(show_fleet.FEWEST, min(CELLS, terminal.width - widest - 34))
    return [show_fleet.spark(node, signs, widest, cells).append(*_wrong(node)) for node in shown["nodes"]]


def _wrong(node: Shown) -> tuple[str, str]:
    return "" if node["ready"] else "  not Ready" if node["there"] else "  not in the cluster", COLOURS["error"]


def _group(one: Shown, signs: dict[str, tuple[str, str]]) -> list[Text]:
    """How it is; and, where there is one, what is wrong or why it was started anew."""
    from rich.text import Text

    letter, shade = signs[one["name"]]
    told = [f"since {one['since']}"] if one["since"] else [one["doing"]] if one["doing"] else []
    told += _on_demand(one)
    told += _figures(one)
    told += [f"{one['restarts']} restarts"] if one["restarts"] else []
    told += ["this start was not proved"] if one["serving"] and not one["proved"] else []
    more_of_it = f"  {', '.join(told)}" if told else ""
    how = one["word"] + (", wakes with the next request" if one["state"] == "asleep" else "")
    first = show.coloured((f"{letter} ", shade), (one["name"], "bold"), "  ", (how, LOOKS[one["state"]]), more_of_it)
    more = [one["cause"]] if one["cause"] else []
    if one["ended"] and one["epochs"] > 1:
        more.append(f"epoch {one['ended']['epoch']} of {one['epochs']} ended: {one['ended']['why']}")
    return [first, *(Text(f"{FURTHER}{text}") for text in more)]


def _on_demand(one: Shown) -> list[str]:
    told = one.get("on_demand")
    if not told:
        return []
    found = [f"sleeps after {told['idle_minutes']} min without a request"] if one["serving"] else []
    if told["seconds"] is not None:
        found.append(f"{told['seconds']} s" + (f" of about {told['expected']:.0f} s" if told["expected"] else ""))
    return [*found, *([f"{one['held']} waiting"] if one["held"] and not one["serving"] else [])]


def _figures(one: Shown) -> list[str]:
    found = []
    if one["tokens_per_second"] is not None:
        found.append(f"{one['tokens_per_second']:g} tok/s")
    if one["running"] is not None:
        found.append(f"{one['running']:.0f} running, {(one['queued'] or 0) + (one['held'] or 0):.0f} waiting")
    if one["cache_usage"] is not None:
        found.append(f"cache {100 * one['cache_usage']:.0f} %")
    return found


def _rails(shown: Shown) -> Iterator[Text]:
    for rail in shown["rails"]:
        measured = "not measured; playbooks/verify.yml does"
        if rail["slowest_gbit"] is not None:
            speeds = f"{rail['slowest_gbit']:.4g} to {rail['fastest_gbit']:.4g} Gb/s"
            measured = f"{speeds} on {(shown['fabric'] or {}).get('time')}"
        fault = f"  {rail['faults'][0]}" if rail["faults"] else ""
        yield show.coloured(f"rail {rail['name']}  {measured}", (fault, COLOURS["error"]))
