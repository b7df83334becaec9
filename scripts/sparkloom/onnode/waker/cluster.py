"""The cluster's side: what is there, who is ready, how much is asked for; and a group's StatefulSets scaled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sparkloom.onnode import kube
from sparkloom.onnode.kube import JSON, MERGE, Unreached
from sparkloom.onnode.now.labels import PART_OF, ROUTER
from sparkloom.onnode.prometheus import samples
from sparkloom.onnode.rank.exposition import CONNECTIONS, PATH
from sparkloom.onnode.rank.order import STATUS_PATH
from sparkloom.onnode.waker import use
from sparkloom.onnode.waker.groups_file import Group

READY = "/ready"
AT_ONCE = 8  # questions
Asked = Callable[[str, int, str, str], bytes]


class Reached(Protocol):
    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any: ...

    def change(self, method: str, path: str, content: Any, kind: str = JSON) -> Any: ...


class Pod(NamedTuple):
    name: str
    id: str
    address: str
    labels: Mapping[str, str]
    runs: bool


class There(NamedTuple):
    """A group as the API server has it."""

    up: int
    pods: int
    head: str  # address of rank 0's pod, empty where there is none


@dataclass
class Cluster:
    """`probes`: the port of supervisors; `figures`: the router's."""

    reached: Reached
    namespace: str
    probes: int
    figures: int
    asked: Asked = kube.asked

    def sets(self) -> dict[str, int]:
        """How many pods each StatefulSet of ours wants."""
        listed = self._items(f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets")
        return {str(one["metadata"]["name"]): int(one["spec"].get("replicas", 1)) for one in listed}

    def pods(self) -> list[Pod]:
        return [_pod(item) for item in self._items(f"/api/v1/namespaces/{self.namespace}/pods")]

    def scale(self, name: str, replicas: int) -> None:
        path = f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets/{name}/scale"
        self.reached.change("PATCH", path, {"spec": {"replicas": replicas}}, MERGE)

    def _items(self, path: str) -> list[dict[str, Any]]:
        labelled = ",".join(f"{key}={value}" for key, value in PART_OF.items())
        listed = self.reached.api(path, {"labelSelector": labelled}, JSON)
        items = listed.get("items") if isinstance(listed, dict) else None
        if not isinstance(items, list):
            raise Unreached(f"the cluster's API gave no list for {path}")
        return items

    # --- what is said by who runs there -----------------------------------------------------------------------

    def ready(self, group: Group) -> bool:
        """As the router finds it: by the Service, at the supervisor."""
        try:
            self.asked(group.address, self.probes, READY, group.name)
        except Unreached:
            return False
        return True

    def down(self, address: str) -> str:
        """Why its supervisor starts nothing any more; empty while it does, or says nothing."""
        try:
            told = json.loads(self.asked(address, self.probes, STATUS_PATH, "rank 0"))
        except (Unreached, ValueError):
            return ""
        if not isinstance(told, dict) or told.get("phase") != "down":
            return ""
        return str(told.get("cause") or told.get("text") or "its supervisor gave up")

    def connections(self, group: Group) -> int | None:
        """Clients' at its engine; None where nobody says."""
        try:
            page = self.asked(group.address, self.probes, PATH, group.name).decode(errors="replace")
        except Unreached:
            return None
        return next((int(sample.value) for sample in samples(page, (CONNECTIONS,))), None)

    def counted(self, pods: list[Pod]) -> dict[str, str | None]:
        """The page of each of the router's pods, also of one that goes, by its id."""
        routers = [
            pod for pod in pods if pod.runs and all(pod.labels.get(key) == value for key, value in ROUTER.items())
        ]
        return dict(zip((pod.id for pod in routers), every(self._page, routers), strict=True))

    def _page(self, pod: Pod) -> str | None:
        path = f"/stats/prometheus?filter={use.FILTER}"
        try:
            return self.asked(pod.address, self.figures, path, pod.name).decode(errors="replace")
        except Unreached:
            return None


def every(what: Callable[[Any], Any], of: list[Any]) -> list[Any]:
    if not of:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(of))) as pool:
        return list(pool.map(what, of))


def found(group: Group, sets: Mapping[str, int], pods: list[Pod]) -> There:
    """`ValueError` for a group whose StatefulSets are not all there."""
    if missing := [name for name in group.sets if name not in sets]:
        raise ValueError(f"StatefulSet {missing[0]} is not there; playbooks/serve.yml makes it")
    names = {f"{name}-0": number for number, name in enumerate(group.sets)}
    mine = [pod for pod in pods if pod.name in names]
    head = next((pod.address for pod in mine if names[pod.name] == 0), "")
    return There(sum(sets[name] > 0 for name in group.sets), len(mine), head)


def _pod(item: Mapping[str, Any]) -> Pod:
    meta, status = item["metadata"], item.get("status") or {}
    labels = {str(key): str(value) for key, value in (meta.get("labels") or {}).items()}
    runs = status.get("phase") == "Running"
    return Pod(str(meta["name"]), str(meta.get("uid")), str(status.get("podIP") or ""), labels, runs)
