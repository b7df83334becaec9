"""A group that a person stops, and starts again: its StatefulSets want no pod, and a ConfigMap says who, and when.

For all who scale: the waker, playbooks, `sparkloom stop`, the page's pod. Supervisors drain (docs/supervisor.md). Who
may write that map and scale may change nothing of what a pod is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from sparkloom.onnode.kube import JSON, MERGE
from sparkloom.onnode.now import bars, pods, seen
from sparkloom.onnode.now.groups import Look, Observed, Shown, label, replicas
from sparkloom.onnode.now.labels import HOSTNAME, PART_OF, STOPS

DRAINS = "requests that run have 40 s to end"
ROUNDED = 0.1  # GiB, in what a picture says of memory


class Reached(seen.Reached, Protocol):
    """A cluster's API, to change: as a pod has it (kube.InCluster), as a controller has it (site/client.py)."""

    def change(self, method: str, path: str, content: Any, kind: str = JSON) -> Any: ...


def stop(reached: Reached, namespace: str, sets: Sequence[Any], who: str) -> str:
    """What all who tell the group say of it from now on: by whom, and when."""
    record = f"{who}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC"
    note(reached, namespace, map(label, sets), record)
    for one in sets:
        scale(reached, namespace, str(one.metadata.name), 0)
    return record


def start(reached: Reached, namespace: str, sets: Sequence[Any], *, awake: bool) -> None:
    """`awake`: at once; one that is on demand sleeps until a request, as another of its turn may be awake."""
    note(reached, namespace, map(label, sets), "")
    for one in sets:
        scale(reached, namespace, str(one.metadata.name), int(awake))


def scale(reached: Reached, namespace: str, name: str, replicas: int) -> None:
    """The right to do that is enough."""
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}/scale"
    reached.change("PATCH", path, {"spec": {"replicas": replicas}}, MERGE)


def note(reached: Reached, namespace: str, labels: Iterable[str], record: str) -> None:
    """Each group has its own key, so that two who write at once do not meet."""
    maps, data = f"/api/v1/namespaces/{namespace}/configmaps", {"data": dict.fromkeys(labels, record)}
    if seen.listed(reached, maps, {}, fieldSelector=f"metadata.name={STOPS}"):
        reached.change("PATCH", f"{maps}/{STOPS}", data, MERGE)
    else:
        reached.change("POST", maps, {"metadata": {"name": STOPS, "labels": PART_OF}, **data})


def settle(reached: Reached, namespace: str, group: str, record: str) -> None:
    """Of a group that is set up: stopped as it was, or not; whatever is left of an earlier one of its name."""
    if seen.stops(reached, namespace).get(group, "") != record:
        note(reached, namespace, [group], record)


def rests(one: Observed) -> bool:
    """Whether there is something to start."""
    return not one.asleep and not all(map(replicas, one.sets))


def in_the_way(shown: Shown, one: Observed) -> dict[str, str]:
    """By the picture: groups that must be gone before it starts, and the Spark that does not hold both. One on demand
    has none, as its waker sees to that."""
    mine = next(each for each in shown["groups"] if each["name"] == one.name)
    found: dict[str, str] = {}
    for node in shown["nodes"] if not one.on_demand else ():
        others = [each for each in node["groups"] if each["group"] != one.name]
        alone = node["gpu"] == bars.ALONE or mine["fraction"] is None
        asked = sum(each["gib"] or 0 for each in others) + (mine["takes_gib"] or 0)
        if node["name"] in mine["nodes"] and (alone or asked > node["free_gib"] - node["guard_gib"] + ROUNDED):
            found |= {each["group"]: node["name"] for each in others}
    return found


def away(look: Look, one: Observed) -> Iterator[str]:
    """Its nodes that are not there: nothing is started without them."""
    for each in one.sets:
        place = str((each.spec.template.spec.node_selector or {}).get(HOSTNAME))
        if told := pods.away(place, look.nodes):
            yield told
