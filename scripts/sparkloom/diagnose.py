"""From a log to its cause: which rule's pattern the text matches, else the lines that say most.

Logs come with colours, timestamps and rank prefixes, several ranks mixed; all of that is taken off first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom import rules
from sparkloom.errors import InputError
from sparkloom.rules.base import Rule

ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\r")
# "[rank3]: ", "(EngineCore pid=94) ", "[2026-06-01 10:00:00 TP0 EP0] ", "spark2:123:456 [0] ", "pod/x-0 | "
PREFIX = re.compile(
    r"^\s*(?:"
    r"\[rank\s?\d+\]:?\s*"
    r"|\([\w.-]+ pid=\d+\)\s*"
    r"|\[pod/[^\]]+\]\s*"
    r"|\[\d{4}-\d\d-\d\d[^\]]*\]\s*"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\s+(?:std(?:out|err) F )?"
    r"|[\w.-]+:\d+:\d+ \[\d+\]\s+"
    r"|(?:pod/)?[\w.-]+\s*\|\s"
    r"|[IWEF]\d{4} [\d:.]+\s+\d+\s+\S+\]\s*"
    r")"
)
RANK = re.compile(r"\[rank\s?(\d+)\]|\bTP(\d+)\b|node[_-]rank[= ](\d+)")
# What makes a line tell something, and how much. The last exception is usually the cause's own message.
TELLING = (
    (re.compile(r"^[A-Z]\w*(\.\w+)*(Error|Exception|Interrupt)\b"), 8),
    (re.compile(r"\b(Assertion|assert)\w*\b|CHECK failed|device-side"), 6),
    (re.compile(r"CUDA error|cudaError|Xid|illegal|NV_ERR|out of memory|OOM", re.IGNORECASE), 6),
    (re.compile(r"NCCL WARN|ibv_\w+ failed|unhandled (system|cuda) error", re.IGNORECASE), 6),
    (re.compile(r"\b(error|fatal|failed|cannot|refused|unsupported|timed? ?out|killed)\b", re.IGNORECASE), 3),
    (re.compile(r"^\s*File \"|^Traceback|^\s+at |DeprecationWarning|FutureWarning"), -6),
    (re.compile(r"\bINFO\b|\bDEBUG\b|it/s\]|%\|"), -2),
)
MAX_CHARS = 8_000_000  # per log: the cause stands near the end, and a day of INFO lines need not be read


def diagnose(text: str) -> dict[str, Any]:
    """Matched rules with cause and fix, most severe first; for an unknown failure the three most telling lines."""
    text = text[-MAX_CHARS:]
    raw, lines = text.split("\n"), list(_clean(text))
    joined = "\n".join(lines)
    matches = [match for rule in _known() if (match := _match(rule, joined, lines, raw))]
    matches.sort(key=lambda match: (rules.ORDER[match["severity"]], -match["count"], match["rule"]))
    return {"matches": matches, "lines": [] if matches else telling(lines)}


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


def _clean(text: str) -> Iterator[str]:
    """Lines without colours and prefixes."""
    for raw in ANSI.sub("", text).split("\n"):
        line = raw
        for _ in range(4):  # prefixes stack: pod name, time, rank
            line, taken = PREFIX.subn("", line, count=1)
            if not taken:
                break
        yield line.rstrip()


def _rank(raw: str) -> str:
    """The rank that a raw line names, or nothing."""
    found = RANK.search(raw[:200])
    return next((group for group in found.groups() if group), "") if found else ""


@cache
def _known() -> tuple[Rule, ...]:
    return tuple(rule for rule in rules.every() if rule.log_pattern)


@cache
def _pattern(rule: Rule) -> re.Pattern[str]:
    return re.compile(str(rule.log_pattern))


def _match(rule: Rule, text: str, lines: list[str], raw: list[str]) -> dict[str, Any] | None:
    found = _pattern(rule).search(text)
    if found is None:
        return None
    number = text.count("\n", 0, found.start())
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
        "ranks": sorted({rank for at in hits if (rank := _rank(raw[at]))}, key=int),
    }


def telling(lines: Iterable[str], limit: int = 3) -> list[str]:
    """The most informative lines, in the order of the log: repeated ones once, later ones before earlier ones."""
    best: dict[str, tuple[float, int, str]] = {}
    for number, line in enumerate(lines):
        weight = sum(points for pattern, points in TELLING if pattern.search(line))
        if weight > 0:
            shape = re.sub(r"0x[0-9a-f]+|\d+", "#", line.strip())[:160]
            best[shape] = (weight + number * 1e-7, number, line.strip()[:400])
    chosen = sorted(best.values(), reverse=True)[:limit]
    return [line for _, _, line in sorted(chosen, key=lambda item: item[1])]
