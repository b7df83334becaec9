"""From a log to its cause: which rule's pattern the text matches, else the lines that say most.

Logs come with colours, timestamps and rank prefixes, several ranks mixed; all of that is taken off first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.base.finding import ORDER
from sparkloom.judge import rules
from sparkloom.judge.rules.base import Rule
from sparkloom.onnode import loglines

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
    return diagnose("\n".join(_read(path) for path in paths))


def _read(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.buffer.read().decode("utf-8", errors="replace")
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise InputError.single(str(path), f"cannot be read: {error.strerror}", rule="unreadable") from None


@cache
def _known() -> tuple[Rule, ...]:
    return tuple(rule for rule in rules.every() if rule.log_pattern)


@cache
def _pattern(rule: Rule) -> re.Pattern[str]:
    return re.compile(str(rule.log_pattern))


def _match(rule: Rule, text: str, lines: list[str], raw: list[str]) -> dict[str, Any] | None:
    match = _pattern(rule).search(text)
    if match is None:
        return None
    number = text.count("\n", 0, match.start())
    # a pattern over several lines counts once, at its first
    hits = [at for at in range(number, len(lines)) if _pattern(rule).search(lines[at])] or [number]
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
