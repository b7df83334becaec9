"""Causes that only a log tells: a port that is taken, memory that something else holds, libraries that differ.

What a profile shows beforehand is a rule (`judge/rules`); the rest is data, `data/log_causes.yml`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sparkloom.base.finding import Severity

FILE = Path(__file__).parent / "data" / "log_causes.yml"


@dataclass(frozen=True)
class LogCause:
    """One cause: how a log says it, why it comes, what to do, and who met it."""

    id: str
    severity: Severity
    log_pattern: str
    why: str
    fix: str
    seen: tuple[tuple[str, str], ...]  # line and source


@cache
def every() -> tuple[LogCause, ...]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = yaml.load(FILE.read_text(encoding="utf-8"), Loader=loader)
    return tuple(_cause(name, entry) for name, entry in entries.items())


def _cause(name: str, entry: dict[str, Any]) -> LogCause:
    re.compile(entry["pattern"])  # a broken one fails here, not in front of somebody's log
    seen = tuple((line["line"], line["source"]) for line in entry["seen"])
    return LogCause(name, entry["severity"], entry["pattern"], entry["why"], entry["fix"], seen)
