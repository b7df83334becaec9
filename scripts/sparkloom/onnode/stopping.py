"""A group that a person stops, and starts again: its StatefulSets want no pod, and say by whom and since when.

For all who scale: the waker, playbooks, `sparkloom stop`, a pod that may. Supervisors drain (docs/supervisor.md).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sparkloom.onnode.kube import JSON, MERGE
from sparkloom.onnode.now import seen
from sparkloom.onnode.now.labels import STOPPED


class Reached(seen.Reached, Protocol):
    """A cluster's API, to change: as a pod has it (kube.InCluster), as a controller has it (site/client.py)."""

    def change(self, method: str, path: str, content: Any, kind: str = JSON) -> Any: ...


def stop(reached: Reached, namespace: str, sets: Sequence[str], who: str) -> str:
    """What all who tell the group say of it from now on: by whom, and when."""
    record = f"{who}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC"
    for name in sets:
        scale(reached, namespace, name, 0, {STOPPED: record})
    return record


def start(reached: Reached, namespace: str, sets: Sequence[str], *, awake: bool) -> None:
    """`awake`: at once; one that is on demand sleeps until a request, as another of its turn may be awake."""
    for name in sets:
        scale(reached, namespace, name, int(awake), {STOPPED: None})


def scale(
    reached: Reached, namespace: str, name: str, replicas: int, notes: Mapping[str, str | None] | None = None
) -> None:
    """With annotations in one change; without them the right to scale is enough."""
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"
    content: dict[str, Any] = {"spec": {"replicas": replicas}}
    if notes is None:
        path += "/scale"
    else:
        content["metadata"] = {"annotations": dict(notes)}
    reached.change("PATCH", path, content, MERGE)
