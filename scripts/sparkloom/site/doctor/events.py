"""What a task of the dry run said, as plain data: kept by the callback, read by the verdict at the end of the run.

Ansible runs a task in a process that it forks from the one in which callbacks live, so the last task of a run finds
everything that came before it in SEEN.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

CLUSTER = "cluster"  # in place of a host: what belongs to all
PLAY = "doctor"  # tag of the plays that are listened to
# All that a finding is made from; the rest of a result (a k8s object, a probe) stays out.
KEPT = (
    "changed", "diff", "done", "drift", "enabled", "findings", "links", "module_stderr", "msg", "name", "paths",
    "rows", "state", "stdout_lines", "unreachable", "words",
)  # fmt: skip


class Event(TypedDict):
    host: str
    role: str
    area: str  # stem of the task file, which some are called by
    task: str
    outcome: str  # changed, judged, failed, unreachable
    result: dict[str, Any]


SEEN: list[Event] = []


def keep(host: str, role: str, area: str, task: str, outcome: str, result: dict[str, Any]) -> None:
    """Adds what a finding could come from; a task that changed nothing and judged nothing says nothing."""
    if outcome == "ok":
        outcome = "changed" if result.get("changed") else "judged" if result.get("rows") or result.get("words") else ""
    if outcome:
        plain = json.loads(json.dumps(_trimmed(result), default=str))
        SEEN.append(Event(host=host, role=role, area=area, task=task, outcome=outcome, result=plain))


def _trimmed(result: dict[str, Any]) -> dict[str, Any]:
    kept = {key: result[key] for key in KEPT if key in result}
    objects = result.get("result")
    if isinstance(objects, dict) and isinstance(objects.get("results"), list):
        kept["objects"] = [_object(item) for item in objects["results"] if item.get("changed")]
    elif isinstance(objects, dict) and objects.get("kind") and result.get("changed"):
        kept["objects"] = [_object(result)]
        kept.pop("diff", None)
    return kept


def _object(item: dict[str, Any]) -> dict[str, Any]:
    """Kind, name and what differs, of one object that kubernetes.core.k8s would have applied."""
    made = item.get("result", {})
    return {"kind": made.get("kind"), "name": made.get("metadata", {}).get("name"), "diff": item.get("diff") or {}}
