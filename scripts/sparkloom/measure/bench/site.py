"""What is served at a site, asked of its cluster and of build/<site>/: a program of its own, run before the load.

`python -m sparkloom.measure.bench.site INVENTORY '{"streams": [1, 8], ...}'` prints JSON. The load generator starts it
and stays small: it needs neither the Kubernetes client nor the plan itself. Whatever is not known says why.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base import json_text, repository
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.cluster import Cluster
from sparkloom.judge.capacity import speed
from sparkloom.launch import fabric, groups
from sparkloom.launch.groups import Placed
from sparkloom.onnode.nccl import log as nccl_log
from sparkloom.onnode.now.groups import Observed
from sparkloom.render.manifests import names
from sparkloom.site import client, now
from sparkloom.site.endpoint import reach

LOG_BYTES = 4_000_000
DRIVER = "nvidia.com/cuda.driver-version.full"


def unknown(why: str) -> str:
    return f"unknown, because {' '.join(why.split())[:300]}"


NO_NCCL = unknown("no rank's log names NCCL's version")


def collect(
    inventory: str, *, profile: str | None, streams: list[int], group: str | None, model: str | None
) -> dict[str, Any]:
    cluster = case.cluster(inventory)
    site = Site(cluster, inventory)
    member = site.member(profile, group, model)
    record = member.record if member else {}
    name, place = record.get("profile") or profile, site.place(member)
    found: dict[str, Any] = {
        "site": cluster.name,
        "endpoint": _endpoint(cluster, inventory),
        "profile": name or unknown(site.problem or "nothing is served there"),
        **site.seat(member, group),
        "rails": _rails(cluster, record, place.vf if place and record else None),
    }
    for key in ("model", "revision", "engine", "release", "image", "config_hash"):
        found[key] = record.get(key) or unknown(site.problem or "the record of what is served names none")
    found["argv"] = {str(rank["rank"]): rank["argv"] for rank in record["ranks"]} if record else unknown(site.problem)
    found |= site.running(member, str(name or ""))
    found |= _plan(str(name), cluster, streams, place) if name else {"profile_hash": unknown(site.problem)}
    return found


def _endpoint(cluster: Cluster, inventory: str) -> dict[str, Any]:
    """Where the site serves, for a run that was given no address; or the problem that hides it."""
    try:
        known = reach(cluster, inventory)
    except InputError as error:
        return error.problems[0]._asdict()
    return {name: None if value is None else str(value) for name, value in known._asdict().items()}


class Site:
    """The cluster where it can be asked, else the files that the last `serve` left."""

    def __init__(self, cluster: Cluster, inventory: str) -> None:
        self._cluster, self._inventory = cluster, inventory
        self._there: now.Site | None = None
        self._build = repository.kept(cluster.name)
        self._reached: client.Client | None = None
        self.problem = self.several = ""
        self._guarded(self._reach)

    def _reach(self) -> None:
        reached = client.of(self._cluster)
        reached.core.api_client.configuration.retries = False
        self._reached = reached

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """The answer; a cluster that gives none is the `problem` from then on."""
        try:
            return client.asked(work, self._cluster)
        except InputError as error:
            self.problem = error.problems[0].message
        return None

    def member(self, profile: str | None, group: str | None, model: str | None) -> Observed | None:
        """Who is measured: the group that is named, or that has the profile, or that answers to the name; or the only
        one. A group's name that is not there is refused.
        """
        reached = self._reached
        if not reached:
            return None
        there: now.Site | None = self._guarded(lambda: now.read(self._inventory, reached))
        self._there = there
        if there is None:
            return None
        if group:
            return there.one(group)
        known = [one for one in there.groups if one.record]
        runs = [one for one in known if one.pods] or known
        mine = [one for one in known if profile in (one.plan.get("profile"), one.record["profile"])]
        chosen = mine if profile else runs
        if len(chosen) > 1 and model:
            own = [one for one in chosen if one.goes_by(model) or model == one.record.get("model")]
            chosen = own or chosen
        if len(chosen) == 1:
            return chosen[0]
        names = ", ".join(one.name for one in known) or "nothing"
        told = f"{self._cluster.name} serves {names}"
        self.several = told if len(chosen) > 1 else ""
        self.problem = self.problem or told + (f", not {profile}" if profile and not chosen else "; --group names one")
        return None

    @property
    def _listed(self) -> bool:
        return self._there is not None and self._there.planned.listed

    def seat(self, member: Observed | None, wanted: str | None) -> dict[str, Any]:
        """Of a site that serves several: which group it is, what it is asked for as, and on which Sparks it stands."""
        if self.several:
            return {"several": self.several}
        if not (member and self._listed):
            return {"group": wanted} if wanted else {}
        asleep = {"asleep": member.name} if member.asleep else {}
        return {"group": member.name, "asked_for": member.alias, "sparks": list(member.nodes), **asleep}

    def place(self, member: Observed | None) -> Placed | None:
        """What the list gives the group, its share of the memory too; nothing of a site with one profile."""
        one = self._there.planned.one(member.name) if member and self._there and self._listed else None
        return one.group if one else None

    def running(self, member: Observed | None, profile: str) -> dict[str, Any]:
        """Image digest, environment, driver, NCCL and transport, from the pods that run now."""
        asked = self._guarded(lambda: self._running(member)) if member and member.record and self._reached else None
        if asked:
            return dict(asked)
        why = self.problem or "nothing is served there"
        found: dict[str, Any] = {key: unknown(why) for key in ("image_digest", "env", "driver")}
        return {**found, **self._kept(profile, why)}

    def _running(self, member: Observed) -> dict[str, Any]:
        assert self._reached
        pods, record = member.pods, member.record
        if not pods:
            return {}
        stale = [
            pod.metadata.name
            for pod in pods
            if (pod.metadata.annotations or {}).get(names.CONFIG_HASH) != record["config_hash"]
        ]
        statuses = [status for pod in pods for status in pod.status.container_statuses or []]
        images = sorted({status.image_id for status in statuses if status.image_id})
        found: dict[str, Any] = {
            "image_digest": images[0] if len(images) == 1 else images or unknown("no container has started"),
            "env": {pod.metadata.labels.get(names.RANK, "?"): _env(pod) for pod in pods},
            "driver": self._driver({pod.spec.node_name for pod in pods}),
            "restarts": sum(status.restart_count for status in statuses),
            "since": min(str(pod.status.start_time) for pod in pods),
        }
        if stale:
            found["stale_pods"] = f"{', '.join(stale)} run another launch than the record tells"
        return {**found, **self._transport(pods, record)}

    def _driver(self, nodes: set[str]) -> Any:
        assert self._reached
        items = [node for node in self._reached.core.list_node().items if node.metadata.name in nodes]
        found = {n.metadata.name: n.metadata.labels[DRIVER] for n in items if DRIVER in (n.metadata.labels or {})}
        return found or unknown(f"no node carries the label {DRIVER}; `sparkloom doctor` shows the driver of each node")

    def _transport(self, pods: Sequence[Any], record: dict[str, Any]) -> dict[str, Any]:
        """NCCL's own words in the logs of these very pods."""
        assert self._reached
        if len(record["ranks"]) == 1:
            return {"transport": {"verdict": "local", "why": "one rank: no network between ranks"}, "nccl": NO_NCCL}
        text = "\n".join(self._reached.head(pod.metadata.name, LOG_BYTES) for pod in pods)
        rails = max(len(rank["addresses"]) for rank in record["ranks"])
        report = nccl_log.read_text(text, rails=rails, nodes=len(pods))
        if not report.ranks:
            return self._kept(str(record["profile"]), "the pods' logs hold no line of NCCL any more")
        return _judged(report.as_dict(), "the logs of the running pods")

    def _kept(self, profile: str, why: str) -> dict[str, Any]:
        """What the last `serve` wrote down about the transport."""
        file = self._build / f"{profile}.transport.json"
        kept = json_text.kept(file)
        if not kept.get("ranks"):
            return {"transport": unknown(why), "nccl": unknown(why)}
        return _judged(kept, f"{file.relative_to(repository.WORK)}, as the last serve kept it; now {why}")


def _judged(report: dict[str, Any], source: str) -> dict[str, Any]:
    versions = sorted({str(rank["nccl_version"]) for rank in report["ranks"] if rank.get("nccl_version")})
    hcas = sorted({hca for rank in report["ranks"] for hca in rank.get("hcas") or []})
    shown = {"verdict": report["verdict"], "why": report["why"], "hcas": hcas, "source": source}
    return {"transport": shown, "nccl": ", ".join(versions) or NO_NCCL}


def _env(pod: Any) -> dict[str, str]:
    """The engine's environment; what comes from a Secret or a field stays a reference."""
    return {
        variable.name: variable.value if variable.value is not None else _reference(variable.value_from)
        for variable in pod.spec.containers[0].env or []
    }


def _reference(source: Any) -> str:
    if source is None:
        return ""
    if source.secret_key_ref:
        return f"<secret {source.secret_key_ref.name}/{source.secret_key_ref.key}>"
    return f"<field {source.field_ref.field_path}>" if source.field_ref else "<reference>"


def _rails(cluster: Cluster, record: dict[str, Any], vf: int | None = None) -> dict[str, Any]:
    """Per rank the address on every rail; per rail the functions behind it: of one group its own on its Sparks."""
    planned = fabric.as_dict(fabric.plan(groups.seated(cluster, vf)))
    mine = {rank["node"] for rank in record.get("ranks", [])}
    behind: dict[str, Any] = {}
    for node in planned["nodes"]:
        for endpoint in node["endpoints"]:
            if vf is not None and (endpoint["vf"] != vf or node["name"] not in mine):
                continue
            rail = behind.setdefault(endpoint["rail"], {"pf": endpoint["pf"], "pci": endpoint["pci"], "hcas": []})
            rail["mtu"] = endpoint["mtu"]
            if endpoint["hca"] not in rail["hcas"]:
                rail["hcas"].append(endpoint["hca"])
    ranks = {
        str(rank["rank"]): {"node": rank["node"], "addresses": rank["addresses"]} for rank in record.get("ranks", [])
    }
    return {"planned": behind, "ranks": ranks or unknown("no record of what is served was read")}


def _plan(profile: str, cluster: Cluster, streams: list[int], seat: Placed | None) -> dict[str, Any]:
    """The profile's file as it is here, and what memory bandwidth allows: garbage is what beats it."""
    try:
        path = Path(profiles.load(profile).document.file)
        computed = speed.Speed(case.judge(profile, cluster, seat=seat).launch.view())
        allowed = {
            "bounds": {str(n): round(computed.bound(n), 2) for n in streams},
            "ceilings": {str(n): round(computed.ceiling(n), 2) for n in streams},
        }
        return {"profile_hash": hashlib.sha256(path.read_bytes()).hexdigest(), **allowed}
    except (InputError, OSError) as error:
        return {"profile_hash": unknown(str(error))}


def main() -> int:
    inventory, asked = sys.argv[1:]
    try:
        print(json.dumps(collect(inventory, **json.loads(asked))))
    except InputError as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.problems))
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
