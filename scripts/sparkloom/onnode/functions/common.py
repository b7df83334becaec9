"""What the parts of this program share."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from sparkloom.onnode.host import backup
from sparkloom.onnode.host.read import outcome, text

Step = tuple[str, Callable[[], object]]  # what changes, and what does it
Steps = Iterator[Step]
ORIGIN = Path("/var/lib/sparkloom/origin/functions.json")


class FunctionsError(Exception):
    """The plan cannot be met; the message says what was found and what to change."""


def applied(steps: Iterable[Step], dry: bool) -> list[str]:
    """What was changed, or would be; each step is done before the next one is looked for."""
    changes = []
    for what, act in steps:
        changes.append(what)
        if not dry:
            act()
    return changes


def ip(*args: str) -> None:
    call("ip", *args)


def call(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise FunctionsError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")


def ask(*argv: str) -> Any:
    """What a program that speaks JSON says; None where it is missing or refuses."""
    told, why = outcome(*argv, timeout=20)
    try:
        return None if why else json.loads(told or "[]")
    except ValueError:
        return None


def remembered() -> dict[str, dict[str, Any]]:
    """How each port was before the first change."""
    return dict(json.loads(text(ORIGIN) or "{}"))


def remember(port: str, facts: dict[str, Any]) -> None:
    """Once: what a later run finds is what an earlier one made."""
    kept = remembered()
    was = kept.get(port, {})
    merged = {**facts, **was}
    if "files" in facts:
        merged["files"] = {**facts["files"], **was.get("files", {})}
    if kept.get(port) == merged:
        return
    ORIGIN.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    backup.write(ORIGIN, json.dumps({**kept, port: merged}, indent=1) + "\n", 0o644)
