"""A cluster in which rendered objects of several groups were applied and became pods, as site/client.py shows one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.now.labels import STOPS
from sparkloom.onnode.now.seen import Seen
from sparkloom.render.manifests.names import CONFIG_HASH, PROFILE, RANK
from sparkloom.site import client, now

AT = "2026-11-25T04:00:00+00:00"
HEARD = "2026-11-26T12:03:40.000000Z"
Object = Mapping[str, Any]


class FleetCluster:
    """`lost`: pods that are not there; `ill`: pods that run and are not ready; `waiting`: what for a pod's container
    waits; all by name. `asleep`: groups of which no rank is wanted, by label; `stopped`:
    of those, by whom and when; `heard`: when a node renewed its Lease, if not a moment ago.
    """

    namespace = "sparkloom"

    def __init__(
        self, objects: Sequence[Object], lost: Sequence[str] = (), ill: Sequence[str] = (), asleep: Sequence[str] = ()
    ) -> None:
        self.objects, self.lost, self.ill, self.asleep = list(objects), lost, ill, asleep
        self.waiting: dict[str, str] = {}
        self.stopped: dict[str, str] = {}
        self.kept: dict[str, dict[str, str]] = {}
        self.supervisors: dict[str, dict[str, Any]] = {}
        self.events: dict[str, str] = {}
        self.heard: dict[str, str] = {}
        self.core = NS(api_client=NS(configuration=NS(retries=None)))

    def prove(self, name: str, objects: Sequence[Object], **more: Any) -> None:
        """As a proof writes it."""
        record = _record(objects)
        told = {key: record[key] for key in ("profile", "model", "engine", "release", "image", "config_hash")}
        data = {**told, "policy": "refuse", "transport": "", "memory_gib": {}, **more}
        self.kept[name] = {"served.json": json.dumps(data)}

    def records(self) -> list[dict[str, Any]]:
        maps = [item for item in self.objects if item["kind"] == "ConfigMap"]
        return [json.loads(item["data"]["record.json"]) for item in maps if "record.json" in item.get("data", {})]

    def config_map(self, name: str) -> dict[str, str] | None:
        return self.kept.get(name)

    def put_config_map(self, name: str, data: dict[str, str], **_: Any) -> bool:
        self.kept[name] = data
        return True

    def engine_sets(self) -> list[Any]:
        return [Seen(item) for item in self._sets()]

    def _sets(self) -> list[Object]:
        sets = [item for item in self.objects if item["kind"] == "StatefulSet"]
        return [{**item, "spec": {**item["spec"], "replicas": self._replicas(item)}} for item in sets]

    def stops(self) -> dict[str, str]:
        return self.stopped

    def _replicas(self, item: Object) -> int:
        return (
            0 if item["metadata"]["labels"][PROFILE] in (*self.asleep, *self.stopped) else int(item["spec"]["replicas"])
        )

    def pods(self, labels: Mapping[str, str]) -> list[Any]:
        return [Seen(item) for item in self._pods()]

    def _pods(self) -> list[Object]:
        sets = [item for item in self.objects if item["kind"] == "StatefulSet" and self._replicas(item)]
        there = [self._pod(item) for item in sets if f"{item['metadata']['name']}-0" not in self.lost]
        return sorted(there, key=lambda pod: str(pod["metadata"]["name"]))

    def _pod(self, item: Object) -> Object:
        name, template = f"{item['metadata']['name']}-0", item["spec"]["template"]
        assert {PROFILE, RANK} <= set(template["metadata"]["labels"])
        ready = name not in (*self.ill, *self.waiting)
        state = {"waiting": {"reason": self.waiting[name], "message": ""}} if name in self.waiting else {}
        engine = {"name": "engine", "state": state, "ready": ready, "restartCount": 0, "imageID": "sha256:1"}
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": AT}
        meta = {**template["metadata"], "name": name, "uid": name}
        meta["annotations"] = {CONFIG_HASH: item["metadata"]["annotations"][CONFIG_HASH]}
        spec = {**template["spec"], "nodeName": template["spec"]["nodeSelector"]["kubernetes.io/hostname"]}
        status = {"phase": "Running", "containerStatuses": [engine], "startTime": AT,
                  "conditions": [condition] if ready else []}  # fmt: skip
        return {"metadata": meta, "spec": spec, "status": status}

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        """The same as the API itself gives it."""
        kind, _, name = path.rpartition("/")
        maps = {item["metadata"]["name"]: item["data"] for item in self.objects if item["kind"] == "ConfigMap"}
        maps |= self.kept
        if kind.endswith("/configmaps"):
            return {"data": maps[name]}
        if query.get("fieldSelector") == f"metadata.name={STOPS}":
            return {"items": [{"metadata": {"name": STOPS}, "data": self.stopped}]}
        labels = dict(pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair)
        mine = [pod for pod in self._pods() if labels.items() <= pod["metadata"]["labels"].items()]
        items: dict[str, list[Any]] = {
            "pods": mine,
            "statefulsets": [one for one in self._sets() if labels.items() <= one["metadata"]["labels"].items()],
            "configmaps": [{"metadata": {"name": name}} for name in maps],
            "nodes": [
                {
                    "metadata": {"name": node},
                    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
                    "spec": {},
                }
                for node in self.nodes()
            ],
            "leases": [
                {"metadata": {"name": node}, "spec": {"renewTime": self.heard.get(node, HEARD)}}
                for node in self.nodes()
            ],
            "events": [{"involvedObject": {"name": of}, "message": text} for of, text in self.events.items()],
        }
        return {"items": items[name]}

    def ask(self, pod: Any, port: int, path: str) -> bytes:
        told = self.supervisors.get(pod.metadata.name)
        if path != "/status" or told is None:
            raise Unreached(f"{pod.metadata.name} does not answer")
        return json.dumps(told).encode()

    def told(self, pod: str) -> dict[str, Any] | None:
        return self.supervisors.get(pod)

    def warnings(self) -> dict[str, str]:
        return self.events

    def nodes(self) -> dict[str, Any]:
        return {f"spark{n}": {"ready": True} for n in range(1, 9)}

    def stream(self, pod: str, *, previous: bool = False, follow: bool = False) -> Iterator[str]:
        yield f"{pod} speaks"


def _record(objects: Sequence[Object]) -> dict[str, Any]:
    (told,) = FleetCluster(objects).records()
    return told


def installed(cluster: FleetCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of whichever cluster a kubeconfig names."""
    monkeypatch.setattr(client, "of", lambda _: cluster)
    monkeypatch.setattr(now, "FromHere", lambda reached: reached)
