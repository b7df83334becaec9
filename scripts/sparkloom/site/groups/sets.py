"""The StatefulSets of ranks: ended, put to sleep and waited for; and the waker, which may do that too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sparkloom.onnode import stopping
from sparkloom.onnode.now.groups import label
from sparkloom.render.manifests.names import ENGINES
from sparkloom.site.client import Client
from sparkloom.site.patience import until_gone

GONE = 300.0  # seconds until a pod has ended, as its grace period and a slow node allow
WAKER, WAKER_GONE = "waker", 60.0


def named(there: Sequence[Any], labels: Collection[str]) -> list[dict[str, Any]]:
    """Those of these groups, as something that changes."""
    return [{"kind": "StatefulSet", "name": one.metadata.name} for one in there if label(one) in labels]


def end(
    reached: Client, there: Sequence[Any], stop: Collection[str], sleep: Collection[str], say: Callable[[str], object]
) -> None:
    """Who is put to sleep keeps its sets, without pods, until somebody wakes it."""
    from kubernetes import client

    apps = client.AppsV1Api(reached.core.api_client)
    mine = [one for one in there if label(one) in {*stop, *sleep}]
    for one in mine:
        if label(one) in sleep:
            stopping.scale(reached, reached.namespace, one.metadata.name, 0)
    for one in mine:
        if label(one) not in sleep:
            apps.delete_namespaced_stateful_set(one.metadata.name, reached.namespace, propagation_policy="Foreground")
    if mine:
        until_gone("pods", lambda: left(reached, stop, sleep), say, GONE)


def kept_stopped(objects: Sequence[Mapping[str, Any]], by: str) -> list[Mapping[str, Any]]:
    """As they are applied of a group that stays stopped."""
    return [
        {**one, "spec": {**one["spec"], "replicas": 0}} if by and one["kind"] == "StatefulSet" else one
        for one in objects
    ]


def left(reached: Client, stop: Collection[str], sleep: Collection[str]) -> list[str]:
    """Pods of all these groups, and sets of those that are to have none."""
    sets = [one.metadata.name for one in reached.engine_sets() if label(one) in stop]
    return sorted([*sets, *(pod.metadata.name for pod in reached.pods(ENGINES) if label(pod) in {*stop, *sleep})])


def scale_waker(reached: Client, replicas: int, say: Callable[[str], object]) -> None:
    """Nothing where a site has none. Scaled to nothing it is gone when this returns."""
    from kubernetes import client

    if (waker := reached.workload("Deployment", WAKER)) is None:
        return
    apps = client.AppsV1Api(reached.core.api_client)
    apps.patch_namespaced_deployment(WAKER, reached.namespace, {"spec": {"replicas": replicas}})
    if not replicas:
        labels = dict(waker.spec.selector.match_labels)
        until_gone(WAKER, lambda: [pod.metadata.name for pod in reached.pods(labels)], say, WAKER_GONE)
