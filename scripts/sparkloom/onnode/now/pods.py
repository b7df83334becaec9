"""One rank's pod as Kubernetes shows it, in one word where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timezone
from typing import Any

from sparkloom.onnode.now.labels import RANK

# A pod that stays in one of these does not get out of it by waiting.
STUCK = {
    "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff",
    "InvalidImageName", "RunContainerError", "Unschedulable",
}  # fmt: skip
HOPELESS = {"refused", "down"}  # what a supervisor cannot mend itself, named once its budget was over


@dataclass(frozen=True, slots=True)
class State:
    """One rank as it is now."""

    rank: str
    pod: str
    node: str
    phase: str
    reason: str
    ready: bool
    restarts: int
    last_words: str = ""
    image: str = ""  # digest of what really runs
    phase_said: str = ""  # by the rank's supervisor
    said: str = ""
    uid: str = ""
    again: str = ""  # what rank 0 said of a failure that came twice since this wait began


def state(pod: Any) -> State:
    """What Kubernetes says about a pod, in one word where it has one."""
    statuses = pod.status.container_statuses or []
    engine = statuses[0] if statuses else None
    reason = ""
    for condition in pod.status.conditions or []:
        if condition.type == "PodScheduled" and condition.status == "False":
            reason = f"{condition.reason}: {condition.message}"
    if engine and engine.state.waiting:
        reason = engine.state.waiting.reason + (
            f": {engine.state.waiting.message}" if engine.state.waiting.message else ""
        )
    if engine and engine.state.terminated:
        reason = f"exited {engine.state.terminated.exit_code}"
    return State(
        rank=pod.metadata.labels.get(RANK, "?"),
        pod=pod.metadata.name,
        node=pod.spec.node_name or "no node",
        phase=pod.status.phase,
        reason=reason,
        ready=bool(engine and engine.ready),
        restarts=engine.restart_count if engine else 0,
        last_words=_last_words(engine),
        image=getattr(engine, "image_id", "") or "",
        uid=str(getattr(pod.metadata, "uid", "") or pod.metadata.name),
    )


def _last_words(engine: Any) -> str:
    """What the container said before it last ended, as the kubelet kept it."""
    for ended in (engine.state, engine.last_state) if engine else ():
        if ended and ended.terminated and ended.terminated.message:
            return str(ended.terminated.message)
    return ""


def since(pods: Iterable[Any]) -> str:
    """When the last rank became ready: a run that changes nothing does not change it either."""
    times = [
        condition.last_transition_time
        for pod in pods
        for condition in pod.status.conditions or []
        if condition.type == "Ready" and condition.status == "True" and condition.last_transition_time
    ]
    return max(times).astimezone(timezone.utc).isoformat(timespec="seconds") if times else ""  # noqa: UP017 - 3.10


def ready(one: Any) -> bool:
    """Whether a pod is Ready; or a node, from which the cluster hears then."""
    return any(c.type == "Ready" and c.status == "True" for c in one.status.conditions or [])
