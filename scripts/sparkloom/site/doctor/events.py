"""What a role's task said when it was asked dry, as plain data: what a finding is made from."""

from __future__ import annotations

import json
from typing import Any, NotRequired, TypedDict

from sparkloom.site.doctor.roles import Task

CLUSTER = "cluster"  # in place of a host: what belongs to all
PLAY = "doctor"  # tag of the plays that have a verdict of their own
# All that a finding is made from; the rest of a result (a probe, a plan) stays out.
KEPT = (
    "changed", "diff", "differing", "done", "drift", "findings", "links", "module_stderr", "msg", "paths", "rows",
    "stdout_lines", "unreachable", "words",
)  # fmt: skip


class Event(TypedDict):
    host: str
    role: str
    area: str  # stem of the task file, which some are called by
    task: str
    outcome: str  # changed, judged, failed, unreachable
    result: dict[str, Any]
    group: NotRequired[str]  # of a site that serves several


def of_task(host: str, task: Task, result: dict[str, Any], group: str = "") -> list[Event]:
    """A task that would change nothing and judged nothing says nothing."""
    judged = "judged" if result.get("rows") or result.get("words") else ""
    outcome = next((word for word in ("unreachable", "failed", "changed") if result.get(word)), judged)
    kept = {key: result[key] for key in KEPT if key in result}
    plain = json.loads(json.dumps(kept, default=str))
    event = Event(host=host, role=task.role, area=task.area, task=task.name, outcome=outcome, result=plain)
    if group:
        event["group"] = group
    return [event] if outcome else []
