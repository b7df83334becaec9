"""Causes that only a log tells: a port that is taken, memory that something else holds, libraries that differ.

What a profile shows beforehand is a rule (`judge/rules`); the rest is data: `data/log_causes.yml`, and beside it
`field_messages.jsonl`, the lines that the patterns were written from, and `log_noise.yml`, what means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.finding import Severity

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class LogCause:
    """One cause: how a log says it, why it comes, what to do."""

    id: str
    severity: Severity
    log_pattern: str
    why: str
    fix: str
    ends: bool  # a start; false: it only says that something else failed


@cache
def every() -> tuple[LogCause, ...]:
    entries = document.own((DATA / "log_causes.yml").read_text(encoding="utf-8"))
    return tuple(
        LogCause(name, entry["severity"], entry["pattern"], entry["why"], entry["fix"], not entry.get("follows", False))
        for name, entry in entries.items()
    )


@cache
def noise() -> dict[str, dict[str, Any]]:
    """What a start prints though nothing is wrong: name -> pattern, why it means nothing, a line and its source."""
    return dict(document.own((DATA / "log_noise.yml").read_text(encoding="utf-8")))
