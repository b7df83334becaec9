"""Objects of Kubernetes' API: listed by whoever reaches it, and asked as the Kubernetes client's own objects are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from sparkloom.onnode.kube import JSON, Unreached
from sparkloom.onnode.now.labels import STOPS

# Where the client's spelling is not regular.
ODD = {"container_id": "containerID", "image_id": "imageID", "pod_ip": "podIP"}
MAPPINGS = {"labels", "annotations", "node_selector", "allocatable", "data"}  # whose keys are not ours to spell


class Reached(Protocol):
    """A cluster's API: as a pod has it (kube.InCluster), as an administrator's machine has it (site/client.py)."""

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any: ...


def listed(
    reached: Reached, path: str, labels: Mapping[str, str], accept: str = JSON, **query: str
) -> list[dict[str, Any]]:
    asked = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items()), **query}
    told = reached.api(path, {key: value for key, value in asked.items() if value}, accept)
    items = told.get("items", "") if isinstance(told, dict) else ""
    if not isinstance(items, list | None):  # None: how the API spells none, of names only
        raise Unreached(f"the cluster's API gave no list for {path}")
    return [item for item in items or () if isinstance(item, dict)]


def pods(reached: Reached, namespace: str, labels: Mapping[str, str]) -> list[Any]:
    """By their names: for the waker, the page, and all that is said of a site from outside."""
    found = map(Seen, listed(reached, f"/api/v1/namespaces/{namespace}/pods", labels))
    return sorted(found, key=lambda pod: str(pod.metadata.name))


def sets(reached: Reached, namespace: str, labels: Mapping[str, str]) -> list[Any]:
    """StatefulSets, whether they have their pods or not; by their names."""
    found = map(Seen, listed(reached, f"/apis/apps/v1/namespaces/{namespace}/statefulsets", labels))
    return sorted(found, key=lambda one: str(one.metadata.name))


def stops(reached: Reached, namespace: str) -> dict[str, str]:
    """By whom and when each group was stopped, by its label; empty of one that was started since."""
    maps = listed(reached, f"/api/v1/namespaces/{namespace}/configmaps", {}, fieldSelector=f"metadata.name={STOPS}")
    return {str(label): str(by) for one in maps for label, by in (one.get("data") or {}).items()}


def warnings(reached: Reached, namespace: str) -> dict[str, str]:
    """The last warning about each object of the namespace, by its name."""
    events = listed(reached, f"/api/v1/namespaces/{namespace}/events", {}, fieldSelector="type=Warning")
    events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return {str(event["involvedObject"].get("name")): str(event.get("message")) for event in events}


class Seen:
    """`Seen(pod).status.container_statuses[0].state.waiting`; what is not there is None."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        first, *rest = name.split("_")
        return _taken(name, self._data.get(ODD.get(name) or first + "".join(part.title() for part in rest)))


def _taken(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value) if name in MAPPINGS else Seen(value)
    if isinstance(value, list):
        return [_taken(name, item) for item in value]
    if isinstance(value, str) and f"_{name}".endswith(("_time", "_timestamp", "_at")):
        return _time(value)
    return value


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 knows no Z
    except ValueError:
        return None
