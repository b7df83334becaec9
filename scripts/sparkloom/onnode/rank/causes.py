"""From an engine's last lines to a cause with its cure: the rules' own patterns, else the line that says most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sparkloom.base.finding import ORDER
from sparkloom.onnode import loglines


def named(lines: Iterable[str], patterns: Iterable[Mapping[str, str]]) -> str:
    """`rule: the line; fix`, or the most telling line, or nothing."""
    clean = list(loglines.clean("\n".join(lines)))
    text = "\n".join(clean)
    for entry in sorted(patterns, key=lambda pattern: ORDER.get(pattern["severity"], 3)):
        if match := re.search(entry["pattern"], text):
            line = clean[text.count("\n", 0, match.start())].strip()
            return f"{entry['rule']}: {line[:200]}; fix: {entry['fix']}"
    told = loglines.telling(clean, 1)
    return told[0][:300] if told else ""


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
