"""From an engine's last lines to a cause with its cure: the rules' own patterns, else the line that says most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sparkloom.base.finding import ORDER
from sparkloom.onnode import loglines


def named(lines: Iterable[str], patterns: Iterable[Mapping[str, str]]) -> str:
    """`rule: the line; fix`, or the most telling line, or none; of several the one that `diagnose` shows first."""
    clean = list(loglines.clean("\n".join(lines)))
    text = "\n".join(clean)
    found = []
    for entry in patterns:
        if match := re.search(entry["pattern"], text):
            first = text.count("\n", 0, match.start())
            often = sum(1 for line in clean[first:] if re.search(entry["pattern"], line)) or 1
            told = f"{entry['rule']}: {clean[first].strip()[:200]}; fix: {entry['fix']}"
            found.append((ORDER.get(entry["severity"], 3), -often, entry["rule"], told))
    if found:
        return min(found)[-1]
    telling = loglines.telling(clean, 1)
    return telling[0][:300] if telling else ""


def kind(cause: str) -> str:
    """What two failures have in common: the rule that names them, else their words less ranks, nodes and numbers."""
    text = re.sub(r"^rank \d+ on \S+: ", "", cause)
    if named := re.search(r"; ([a-z0-9]+(?:-[a-z0-9]+)+): ", text):
        return named[1]
    return re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", "#", text)


def stage(line: str, progress: Iterable[Sequence[str]]) -> str:
    """Where a start is: the engine's own words for it, pattern by pattern; nothing where the line tells none."""
    for pattern, words in progress:
        if match := re.search(pattern, line):
            return words.format(*match.groups())
    return ""
