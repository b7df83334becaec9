"""From a log to its cause: which rule's pattern the text matches, else the lines that say most.

Logs come with colours, timestamps and rank prefixes, several ranks mixed; all of that is taken off first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base.finding import ORDER
from sparkloom.judge import log_causes, rules
from sparkloom.judge.log_causes import LogCause
from sparkloom.judge.rules.rule import Rule
from sparkloom.onnode import loglines, textlog

Known = Rule | LogCause
MAX_CHARS = 8_000_000  # per log: the cause stands near the end, and a day of INFO lines need not be read


def diagnose(text: str) -> dict[str, Any]:
    """Matched rules with cause and fix, most severe first; for an unknown failure the three most telling lines."""
    text = text[-MAX_CHARS:]
    raw, lines = text.split("\n"), list(loglines.clean(text))
    joined = "\n".join(lines)
    matches = [match for rule in _known() if (match := _match(rule, joined, lines, raw))]
    matches.sort(key=lambda match: (ORDER[match["severity"]], -match["count"], match["rule"]))
    return {"matches": matches, "lines": [] if matches else loglines.telling(lines)}


def diagnose_files(paths: Iterable[Path]) -> dict[str, Any]:
    """As `diagnose`, over several logs; `-` is standard input."""
    return diagnose("\n".join(textlog.tail(path, MAX_CHARS) for path in paths))


@cache
def _known() -> tuple[Known, ...]:
    """Traps of a launch, and what only a log tells."""
    return (*(rule for rule in rules.every() if rule.log_pattern), *log_causes.every())


def _match(rule: Known, text: str, lines: list[str], raw: list[str]) -> dict[str, Any] | None:
    pattern = re.compile(str(rule.log_pattern))
    first = pattern.search(text)
    if first is None:
        return None
    number = text.count("\n", 0, first.start())
    # a pattern over several lines counts once, at its first
    hits = [at for at in range(number, len(lines)) if pattern.search(lines[at])] or [number]
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "why": rule.why,
        "fix": rule.fix,
        "line": lines[number].strip()[:400],
        "line_number": number + 1,
        "count": len(hits),
        "ranks": sorted({rank for at in hits if (rank := loglines.rank_of(raw[at]))}, key=int),
    }
