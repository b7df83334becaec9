"""One look at a site: its cluster's objects, what each supervisor says of itself, what each engine counts.

Who looks says how the cluster and a pod are reached: the page from inside, `sparkloom status --watch` through the API.
What cannot be reached is named and the rest is told all the same; only without the cluster there is no look.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from queue import Empty, Queue
from typing import Any, Protocol

from sparkloom.base.json_text import mapping
from sparkloom.onnode.host_metrics import disks
from sparkloom.onnode.kube import JSON, Unreached
from sparkloom.onnode.now import pods, seen
from sparkloom.onnode.now.groups import Applied, Facts, Look, replicas
from sparkloom.onnode.now.labels import ENGINES, HOSTNAME, HOSTS, ONLY_SERVED, PART_OF, RANK, ROUTER
from sparkloom.onnode.now.picture import picture
from sparkloom.onnode.now.seen import Seen
from sparkloom.onnode.prometheus import Names, figures, samples
from sparkloom.onnode.rank.plan import STATUS_PATH

NAMES_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"  # ConfigMaps hold whole programs
RECORD, SERVED, SITE = "record.json", "served.json", "site.json"
SITE_MAP = "page-site"  # of what the controller knows of the site
API_PORT, PROBE_PORT = "api", "probes"  # names of a rank's ports
ROUTER_PORT, HELD_BACK = 9090, "upstream_rq_(pending_active|active)$"  # of the router's own figures
# Who waits for each engine; of a waker's cluster, who has its ear. What an engine does itself, it says itself.
PENDING, ACTIVE = "envoy_cluster_upstream_rq_pending_active", "envoy_cluster_upstream_rq_active"
HOSTS_PORT, HOSTS_PAGE = 9100, "/metrics?collect[]=textfile"  # of the node-exporter; what host_metrics writes
FIRST, SILENT = 10.0, 2.5  # seconds for the first to speak, and after each for the next; the API itself waits 30
LATE = timedelta(seconds=25)  # of a Lease behind the others': each is renewed every 10 s, and missed after 40
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# Of a node, as host_metrics writes it.
OF_HOST: Names = {
    "sparkloom_host_memory_available_bytes": ("available_bytes", "sum"),
    "sparkloom_gpu_temperature_celsius": ("celsius", "max"),
    "sparkloom_gpu_power_watts": ("watts", "sum"),
    "sparkloom_gpu_clock_hertz": ("hertz", "max"),
    "sparkloom_host_written_timestamp_seconds": ("written", "max"),
}
FRESH = 120.0  # seconds in which a node's figures are those of now: they are written every 15
LONGEST = 60.0  # seconds between two looks of which a rate is still one of now


class Reached(seen.Reached, Protocol):
    def ask(self, pod: Any, port: int, path: str) -> bytes: ...


@dataclass
class Gatherer:
    """`facts`: what the controller knows of the site; None: as it wrote that into the cluster. `only`: the labels of
    the one group that is looked at."""

    reached: Reached
    namespace: str
    facts: Facts | None = None
    clock: Callable[[], float] = time.time
    only: Mapping[str, str] = field(default_factory=dict)
    _maps: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)  # name -> version, content
    _made: dict[str, tuple[float, float]] = field(default_factory=dict)  # group -> when, tokens made until then

    def look(self) -> dict[str, Any]:
        """The picture of now; `Unreached` where the cluster says nothing."""
        look, facts = self.observe()
        return picture(facts, look)

    def observe(self) -> tuple[Look, Facts]:
        """Figures of engines and router only for who knows what engines call theirs."""
        applied, facts = self._applied()
        ranks = seen.pods(self.reached, self.namespace, {**ENGINES, **self.only})
        sets = self._sets()
        ready = sum(pods.state(pod).ready for pod in ranks)
        troubled = not ranks or ready < max(len(ranks), sum(map(replicas, sets)))
        nodes = self._nodes()
        reports = at_once(self._report, [pod for pod in ranks if not pods.away(pods.place(pod), nodes)])
        asked = [pod for pod in ranks if _answers(pod)] if facts.get("gauges") else []
        counted = at_once(lambda pod: self._counted(pod, facts), asked)
        made = {pod: page for pod, page in counted.items() if page is not None}
        exporters = [] if self.only else seen.pods(self.reached, self.namespace, HOSTS)
        hosts = at_once(self._host, [pod for pod in exporters if not pods.away(pods.place(pod), nodes)])
        now = self.clock()
        return Look(
            at=now,
            pods=ranks,
            sets=sets,
            stops=seen.stops(self.reached, self.namespace),
            applied=applied,
            nodes=nodes,
            warnings=seen.warnings(self.reached, self.namespace) if troubled else {},
            reports=reports,
            gauges=made,
            hosts=hosts,
            held=self._held() if facts.get("gauges") else {},
            rates={pod: rate for pod, page in made.items() if (rate := self._rate(pod, page, now)) is not None},
        ), facts

    @property
    def core(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    # --- the cluster's objects --------------------------------------------------------------------------------

    def _applied(self) -> tuple[list[Applied], Facts]:
        """Each group's records, and the facts of the site. A map is read again only where it is another."""
        found = {}
        for item in seen.listed(self.reached, f"{self.core}/configmaps", {**PART_OF, **self.only}, NAMES_ONLY):
            name, version = str(item["metadata"]["name"]), str(item["metadata"].get("resourceVersion"))
            if name in (SITE_MAP, ONLY_SERVED) or name.endswith(("-record", "-served")):
                found[name] = self._map(name, version)
        self._maps = {name: kept for name, kept in self._maps.items() if name in found}
        applied = [
            Applied(name.removesuffix("-record"), mapping(data.get(RECORD)), mapping(data.get(SERVED)))
            for name, data in found.items()
            if name != SITE_MAP
        ]
        return applied, self.facts if self.facts is not None else mapping(found.get(SITE_MAP, {}).get(SITE))

    def _map(self, name: str, version: str) -> dict[str, str]:
        known = self._maps.get(name)
        if known is None or known[0] != version:
            whole = self.reached.api(f"{self.core}/configmaps/{name}", {}, JSON)
            known = self._maps[name] = (version, dict(whole.get("data") or {}))
        return known[1]

    def _sets(self) -> list[Any]:
        """Of the engines, whether they have their pods or not; none for who may not read them."""
        try:
            return seen.sets(self.reached, self.namespace, {**ENGINES, **self.only})
        except Unreached:
            return []

    def _nodes(self) -> dict[str, dict[str, Any]]:
        """By the name that pods say, and by the one that they may ask for."""
        found: dict[str, dict[str, Any]] = {}
        heard = self._heard()
        for node in map(Seen, seen.listed(self.reached, "/api/v1/nodes", {})):
            last, ahead = heard.get(node.metadata.name, (None, 0.0))
            late = last and max(at for at, _ in heard.values()) - last > LATE
            since = pods.utc(last) if last and late else pods.unready_since(node)
            facts = {
                "ready": pods.ready(node),
                "cordoned": bool(node.spec.unschedulable),
                "away_since": since,
                "clock_ahead": ahead,
            }
            found |= dict.fromkeys((node.metadata.name, (node.metadata.labels or {}).get(HOSTNAME, "")), facts)
        return found

    def _heard(self) -> dict[str, tuple[datetime, float]]:
        """When each node last said that it is there, by the API's clock, and how far its own was ahead then; nothing
        for who may not read that."""
        found = {}
        with contextlib.suppress(Unreached):
            for lease in map(Seen, seen.listed(self.reached, LEASES, {})):
                if own := lease.spec.renew_time:
                    at = max((by.time for by in lease.metadata.managed_fields or () if by.time), default=own)
                    found[str(lease.metadata.name)] = at, (own - at).total_seconds()
        return found

    # --- what is said by who runs there -----------------------------------------------------------------------

    def _report(self, pod: Any) -> tuple[str, dict[str, Any] | None]:
        """What the supervisor in a running pod says of itself; None when it does not answer."""
        running = pod.status.phase == "Running"
        said = self._asked(pod, _port(pod, PROBE_PORT), STATUS_PATH) if running else None
        return str(pod.metadata.name), mapping(said) or None

    def _counted(self, pod: Any, facts: Facts) -> tuple[str, dict[str, float] | None]:
        """What its engine counts, under our names; None where it says nothing that is known."""
        page = self._asked(pod, _port(pod, API_PORT), "/metrics")
        return str(pod.metadata.name), figures(page or b"", facts.get("gauges") or {}) or None

    def _host(self, exporter: Any) -> tuple[str, dict[str, Any]]:
        """A node by its name, and its figures of now; those that are not there, or are not of now, are left out."""
        page = self._asked(exporter, HOSTS_PORT, HOSTS_PAGE) or b""
        found: dict[str, Any] = dict(figures(page, OF_HOST))
        if full := disks.fills(page.decode(errors="replace")):
            found["disks"] = full
        written = found.pop("written", 0.0)
        return str(exporter.spec.node_name), found if abs(self.clock() - written) < FRESH else {}

    def _held(self) -> dict[str, int]:
        """Requests that the router keeps back until an engine has room, by group; nothing where no router says so."""
        routers = seen.pods(self.reached, self.namespace, ROUTER)
        for pod in (one for one in routers if one.status.phase == "Running"):
            if page := self._asked(pod, ROUTER_PORT, f"/stats/prometheus?filter={HELD_BACK}"):
                return held_back(page.decode(errors="replace"))
        return {}

    def _asked(self, pod: Any, port: int | None, path: str) -> bytes | None:
        """None of one that does not answer."""
        try:
            return self.reached.ask(pod, port, path) if port else None
        except Unreached:
            return None

    def _rate(self, pod: str, page: Mapping[str, float], now: float) -> float | None:
        """Tokens a second since the last look; None at the first one, and after an engine began anew."""
        if "generated" not in page:
            return page.get("engine_tok_s")
        before, self._made[pod] = self._made.get(pod), (now, page["generated"])
        if before is None or not 0 < now - before[0] < LONGEST or page["generated"] < before[1]:
            return page.get("engine_tok_s")
        return (page["generated"] - before[1]) / (now - before[0])


def at_once(ask: Callable[[Any], tuple[str, Any]], whom: Sequence[Any]) -> dict[str, Any]:
    """What each says, by its name, less those that are silent long after the others."""
    answers: Queue[tuple[str, Any]] = Queue()
    for one in whom:
        threading.Thread(target=lambda one=one: answers.put(ask(one)), daemon=True).start()
    said: dict[str, Any] = {}
    with contextlib.suppress(Empty):
        for _ in whom:
            name, told = answers.get(timeout=SILENT if said else FIRST)
            said[name] = told
    return said


def held_back(page: str) -> dict[str, int]:
    """What the router's own figures say of requests that it keeps back: group -> how many."""
    return {
        group: int(one.value)
        for one in samples(page, (PENDING, ACTIVE))
        if (group := one.label("envoy_cluster_name")).endswith("+waker") == (one.name == ACTIVE)
    }


def _answers(pod: Any) -> bool:
    return bool(pod.metadata.labels.get(RANK) == "0" and pods.state(pod).ready and _port(pod, API_PORT))


def _port(pod: Any, name: str) -> int | None:
    containers = pod.spec.containers or []
    listed = (containers[0].ports or []) if containers else []
    return next((port.container_port for port in listed if port.name == name), None)
