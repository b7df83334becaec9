"""From a log to its cause: the first one in time, then what followed from it; else the lines that say most.

Logs come with colours, timestamps and rank prefixes, several ranks mixed; all of that is taken off first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
MATTER = 12  # lines of an unknown failure
ALIKE = 50
NO_DIGITS = str.maketrans("", "", "0123456789")


def diagnose(text: str) -> dict[str, Any]:
    """The cause and what followed from it, each with its fix; where no cause is known the lines that matter."""
    text = text[-MAX_CHARS:]
    raw, lines = text.split("\n"), list(loglines.clean(text))
    noise = _noise(lines)
    kept = list(_kept(lines))
    text = "\n".join(lines[at] for at in kept)
    matches = [match for rule in _known() if (match := _match(rule, text, kept, lines, raw))]
    matches.sort(key=lambda it: (ORDER[it["severity"]], not it["ends"], it["line_number"]))  # else as `_known` has them
    matches = list(_one_name_a_line(matches))
    for match in matches:
        match["followed_from"] = _followed(match, matches[0])
    known = any(match["severity"] == "error" and match["ends"] for match in matches)
    return {"matches": matches, "lines": [] if known else loglines.telling(lines, MATTER), "noise": noise}


def diagnose_files(paths: Iterable[Path]) -> dict[str, Any]:
    """As `diagnose`, over several logs; `-` is standard input."""
    return diagnose("\n".join(_in_time([textlog.tail(path, MAX_CHARS) for path in paths])))


def _in_time(logs: Sequence[str]) -> list[str]:
    """The lines of several logs in the order of their times; one log after the other where one tells no time."""
    if len(logs) < 2:
        return list(logs)
    timed = []
    for text in logs:
        moment = ""
        for line in text.split("\n"):
            moment = loglines.moment(line) or moment
            timed.append((moment, line))
        if not moment:
            return list(logs)
    return [line for _, line in sorted(timed, key=lambda it: it[0])]


def _noise(lines: list[str]) -> list[dict[str, Any]]:
    """What means nothing, with why; those lines are emptied, so that nobody sees a cause in them."""
    text, found = "\n".join(lines), []
    for name, entry in log_causes.noise().items():
        pattern = re.compile(entry["pattern"])
        hits = [at for at, line in enumerate(lines) if pattern.search(line)] if pattern.search(text) else []
        for at in hits:
            lines[at] = ""
        if hits:
            found.append({"noise": name, "why": entry["why"], "count": len(hits)})
    return found


def _one_name_a_line(matches: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Less what a wider pattern says of a line that has its cause already."""
    wider, taken = {cause.id for cause in log_causes.every()}, set()
    for match in matches:
        if match["rule"] not in wider or match["line_number"] not in taken:
            yield match
        taken.add(match["line_number"])


def _kept(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines that are searched: of those that differ in their digits alone the first few."""
    seen: Counter[str] = Counter()
    for at, line in enumerate(lines):
        shape = line.translate(NO_DIGITS)
        seen[shape] += 1
        if seen[shape] <= ALIKE:
            yield at


def _followed(match: dict[str, Any], first: dict[str, Any]) -> str:
    """The cause from which this followed: it says so itself, or it failed later in the same log."""
    later = match["line_number"] > first["line_number"] and match["severity"] == first["severity"] == "error"
    return first["rule"] if match is not first and (match["follows"] or (later and match["ends"])) else ""


@cache
def _known() -> tuple[Known, ...]:
    """Traps of a launch, and what only a log tells."""
    return (*(rule for rule in rules.every() if rule.log_pattern), *log_causes.every())


def _match(rule: Known, text: str, kept: list[int], lines: list[str], raw: list[str]) -> dict[str, Any] | None:
    pattern = re.compile(str(rule.log_pattern))
    first = pattern.search(text)
    if first is None:
        return None
    number = kept[text.count("\n", 0, first.start())]
    # a pattern over several lines counts once, at its first
    hits = [at for at in range(number, len(lines)) if pattern.search(lines[at])] or [number]
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "ends": rule.ends,
        "follows": isinstance(rule, LogCause) and not rule.ends,
        "why": rule.why,
        "fix": rule.fix,
        "line": lines[number].strip()[:400],
        "line_number": number + 1,
        "count": len(hits),
        "ranks": sorted({rank for at in hits if (rank := loglines.rank_of(raw[at]))}, key=int),
    }
