"""The cluster's side: what is there, who is ready, how much is asked for; and a group's StatefulSets scaled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode import kube, stopping
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.now import seen
from sparkloom.onnode.now.groups import replicas, stopped
from sparkloom.onnode.now.labels import PART_OF, ROUTER
from sparkloom.onnode.prometheus import samples
from sparkloom.onnode.rank.exposition import CONNECTIONS, PATH
from sparkloom.onnode.rank.plan import STATUS_PATH
from sparkloom.onnode.waker import use
from sparkloom.onnode.waker.state import Group, Seen

READY = "/ready"
AT_ONCE = 8  # questions
Asked = Callable[[str, int, str, str], bytes]


@dataclass
class Cluster:
    """`probes`: the port of supervisors; `figures`: the router's."""

    reached: stopping.Reached
    namespace: str
    probes: int
    figures: int
    asked: Asked = kube.asked

    def objects(self) -> tuple[dict[str, Any], dict[str, str], list[Any]]:
        """StatefulSets of ours by name, who stopped which group, and pods; `Unreached` where the API says nothing."""
        sets = {str(one.metadata.name): one for one in seen.sets(self.reached, self.namespace, PART_OF)}
        return sets, seen.stops(self.reached, self.namespace), seen.pods(self.reached, self.namespace, PART_OF)

    # --- what is said by who runs there -----------------------------------------------------------------------

    def ready(self, group: Group) -> bool:
        """As the router finds it: by the Service, at the supervisor."""
        return self._answer(group.address, self.probes, READY, group.name) is not None

    def down(self, address: str) -> str:
        """Why its supervisor starts nothing any more; empty while it does, or says nothing."""
        told = json_text.mapping(self._answer(address, self.probes, STATUS_PATH, "rank 0"))
        if told.get("phase") != "down":
            return ""
        return str(told.get("cause") or told.get("text") or "its supervisor gave up")

    def connections(self, group: Group) -> int | None:
        """Clients' at its engine; None where nobody says."""
        page = self._answer(group.address, self.probes, PATH, group.name) or ""
        return next((int(sample.value) for sample in samples(page, (CONNECTIONS,))), None)

    def counted(self, pods: list[Any]) -> dict[str, str | None]:
        """The page of each of the router's pods, also of one that goes, by its id."""
        running = (pod for pod in pods if pod.status.phase == "Running")
        routers = [pod for pod in running if ROUTER.items() <= (pod.metadata.labels or {}).items()]
        return dict(zip((str(pod.metadata.uid) for pod in routers), every(self._page, routers), strict=True))

    def _page(self, pod: Any) -> str | None:
        path = f"/stats/prometheus?filter={use.FILTER}"
        return self._answer(str(pod.status.pod_ip or ""), self.figures, path, str(pod.metadata.name))

    def _answer(self, address: str, port: int, path: str, who: str) -> str | None:
        """None of one that does not answer."""
        try:
            return self.asked(address, port, path, who).decode(errors="replace")
        except Unreached:
            return None


def every(what: Callable[[Any], Any], of: list[Any]) -> list[Any]:
    if not of:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(of))) as pool:
        return list(pool.map(what, of))


def found(group: Group, sets: Mapping[str, Any], stops: Mapping[str, str], pods: list[Any], at: float) -> Seen:
    """As the API server has it; `ValueError` for a group whose StatefulSets are not all there."""
    if missing := [name for name in group.sets if name not in sets]:
        raise ValueError(f"StatefulSet {missing[0]} is not there; playbooks/serve.yml makes it")
    mine = {pod.metadata.name: pod for pod in pods if pod.metadata.name in {f"{name}-0" for name in group.sets}}
    head = mine.get(f"{group.sets[0]}-0")
    address = str(head.status.pod_ip or "") if head else ""
    wanted = [sets[name] for name in group.sets]
    return Seen(sum(map(replicas, wanted)), len(mine), False, "", at, head=address, stopped=stopped(wanted, stops))
