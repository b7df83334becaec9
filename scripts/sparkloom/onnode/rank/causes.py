"""From an engine's last lines to a cause with its cure: the rules' own patterns, else the line that says most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkloom.base.finding import ORDER
from sparkloom.onnode import loglines

NOISE = "noise"  # severity of a pattern whose lines mean nothing
WHO = re.compile(r"^rank \d+ on \S+: ")
# How an epoch ends, by the words that the supervisors have for it, and one short name each.
ENDS = (
    ("rail", r"rail \S+: "),
    ("transport", r"NCCL (?:transport|says nothing|\S+ runs here)"),
    ("no-token", r"no token \d"),
    ("no-progress", r"no progress for \d"),
    ("scheduler-gone", r"scheduler process \d"),
    ("lender", r"rank \d+ on \S+ did not listen at "),
    ("told-to-go", r"(?:this rank|rank \d+(?: on \S+)?) was told to go"),
    ("rank-lost", r"rank \d+ on \S+ (?:is gone|was started anew)"),
    ("not-started", r"\S+ cannot be started"),
    ("memory-guard", r"the engine was ended by the node's memory guard"),
    ("engine-ended", r"the engine (?:ended|was ended)"),
)
STOPS = (*(name for name, _ in ENDS), "other")


def named(lines: Iterable[str], patterns: Sequence[Mapping[str, Any]]) -> str:
    """`rule: the line; fix`, or the most telling line, or none; of several the one that `diagnose` shows first."""
    noise = [entry["pattern"] for entry in patterns if entry["severity"] == NOISE]
    clean = [line for line in loglines.clean("\n".join(lines)) if not any(re.search(at, line) for at in noise)]
    text = "\n".join(clean)
    found = []
    for at, entry in enumerate(patterns):
        if entry["severity"] != NOISE and (match := re.search(entry["pattern"], text)):
            first = text.count("\n", 0, match.start())
            told = f"{entry['rule']}: {clean[first].strip()[:200]}; fix: {entry['fix']}"
            rank = (ORDER.get(entry["severity"], 3), not entry.get("ends", True), first, at)
            found.append((*rank, told))
    if found:
        return min(found)[-1]
    telling = loglines.telling(clean, 1)
    return telling[0][:300] if telling else ""


def kind(cause: str) -> str:
    """What two failures have in common: the rule that names them, else their words less ranks, nodes and numbers."""
    text = WHO.sub("", cause)
    if named := re.search(r"; ([a-z0-9]+(?:-[a-z0-9]+)+): ", text):
        return named[1]
    return re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", "#", text)


def stop(why: str) -> str:
    """One of STOPS: what an engine printed comes after our own words and is not looked at."""
    text = WHO.sub("", why)
    return next((name for name, begins in ENDS if re.match(begins, text)), "other")


def rule(cause: str, patterns: Iterable[Mapping[str, Any]]) -> str:
    """The rule that names a cause; empty where none does. Whoever writes into an engine's log cannot add to them."""
    named = set(re.findall(r"; ([a-z0-9]+(?:-[a-z0-9]+)+): ", cause))
    return min(named & {entry["rule"] for entry in patterns if entry["severity"] != NOISE}, default="")


def stage(line: str, progress: Iterable[Sequence[str]]) -> str:
    """Where a start is: the engine's own words for it, pattern by pattern; nothing where the line tells none."""
    for pattern, words in progress:
        if match := re.search(pattern, line):
            return words.format(*match.groups())
    return ""
