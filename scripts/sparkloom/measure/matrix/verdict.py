"""What became of a cell: a status, and in a sentence why. Pure, from what the two commands left."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sparkloom.measure.matrix.spec import Level, Status

SILENT = {"stall", "no-token"}  # what a client sees of an engine that hangs
# The playbook's own words for ranks that neither became ready nor ended.
NOT_READY = re.compile(r"\bnot ready after (\d+) s\b")


# Ansible's words: the task that failed first, by role. A site that is not as it should be is no cell's fault.
_TASK = re.compile(r"^TASK \[(?:(\w+) : )?([^\]]*)\]", re.M)
_FAILED = re.compile(r"^(?:fatal|failed): \[[^\]]*\].*(?:FAILED!|=>)", re.M)
SITE = {"preflight", "model_store"}
JUDGED = "Judge the profile on this site"


class CellVerdict(NamedTuple):
    status: Status
    note: str


def at_fault(log: str) -> str:
    """Whose fault a playbook's failure is: `site`, `refused` (the profile was judged and not tried) or `cell`."""
    failed = next((match for match in _FAILED.finditer(log) if "UNREACHABLE!" not in match[0]), None)
    tasks = [match for match in _TASK.finditer(log) if failed and match.start() < failed.start()]
    if not tasks or tasks[-1][1] not in SITE:
        return "cell"
    return "refused" if tasks[-1][2].startswith(JUDGED) else "site"


def start(code: int | None, seconds: float, log: str) -> CellVerdict | None:
    """Of the switch; None when the cell serves."""
    if code is None:
        return CellVerdict("hang", f"not serving after {seconds:.0f} s")
    if code == 0:
        return None
    if at_fault(log) == "refused":
        return CellVerdict("skipped", "preflight refused the profile before anything was stopped")
    if waited := NOT_READY.search(log):
        return CellVerdict("hang", f"the ranks were not ready after {waited[1]} s")
    return CellVerdict("startup_crash", f"the switch ended with {code} after {seconds:.0f} s")


def measured(
    document: Mapping[str, Any] | None, code: int | None, *, alive: bool, bounds: Mapping[int, float]
) -> CellVerdict:
    """Of the measurement. `alive`: the server still answers afterwards."""
    levels: Sequence[Mapping[str, Any]] = (document or {}).get("levels") or []
    gone = "" if alive else "; nobody answers now"
    if not levels:
        if code is None:
            return CellVerdict("hang", "no level was measured before the time was up")
        return CellVerdict("bench_crash", f"nothing was measured{gone}")
    reasons = (Level.model_validate(level).garbage(bounds.get(level["concurrency"])) for level in levels)
    if bad := next(filter(None, reasons), ""):
        return CellVerdict("garbage", bad)
    errors = Counter[str]()
    for level in levels:
        errors.update(level.get("errors") or {})
    why = _counted(errors)
    dead = next((level for level in levels if not level["ok"]), None)
    silent = dead is not None and set(dead.get("errors") or {}) <= SILENT
    if code is None or silent:
        return CellVerdict("hang", _of(dead) or why or "the measurement did not end")
    if not alive or dead is not None:
        return CellVerdict("bench_crash", f"{_of(dead) or why}{gone}".lstrip("; "))
    if errors or not document or not document.get("complete", True):
        return CellVerdict("partial", why or "not every level was measured")
    problems = document.get("problems") or []
    return CellVerdict("partial", str(problems[0])) if problems else CellVerdict("ok", "")


def _of(level: Mapping[str, Any] | None) -> str:
    return f"n={level['concurrency']}: {_counted(level.get('errors') or {})}" if level else ""


def _counted(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in Counter(errors).most_common())
