"""What the kubelet's probes ask: files and /proc only, never the engine, so that asking costs it nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from sparkloom.onnode.rank.status_log import STATUS

STALE = 30.0


def probe(what: str, run: str) -> tuple[bool, str]:
    """The verdict, and the words that the kubelet writes into the pod's events."""
    status = read(run)
    if status is None:
        return False, "the supervisor has not begun"
    who = f"rank {status['rank']} epoch {status['epoch']}"
    age = time.time() - status["beat"]
    if what == "live":
        return age < STALE, f"{who}: the supervisor was last heard {age:.0f} s ago"
    if what == "started":
        return age < STALE, f"{who}: {status['phase']}"
    text = status["cause"] or status["text"]
    return bool(status["serving"]) and age < STALE, f"{who} {status['phase']}: {text}"


def read(run: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((Path(run) / STATUS).read_text())
    except (OSError, ValueError):
        return None
    return found
