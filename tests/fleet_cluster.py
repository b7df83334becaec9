"""A cluster in which rendered objects of several groups were applied and became pods, as site/client.py shows one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace as NS
from typing import Any

from sparkloom.render.manifests.names import CONFIG_HASH, PROFILE, RANK

AT = "2026-11-25T04:00:00+00:00"
Object = Mapping[str, Any]


class FleetCluster:
    """`lost`: pods that are not there; `ill`: pods that run and are not ready; `waiting`: what for a pod's container
    waits; all by name. `asleep`: groups of which no rank is wanted, by label.
    """

    namespace = "sparkloom"

    def __init__(
        self, objects: Sequence[Object], lost: Sequence[str] = (), ill: Sequence[str] = (), asleep: Sequence[str] = ()
    ) -> None:
        self.objects, self.lost, self.ill, self.asleep = list(objects), lost, ill, asleep
        self.waiting: dict[str, str] = {}
        self.kept: dict[str, dict[str, str]] = {}
        self.supervisors: dict[str, dict[str, Any]] = {}
        self.events: dict[str, str] = {}
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

    def engine_sets(self) -> list[Any]:
        sets = [item for item in self.objects if item["kind"] == "StatefulSet"]
        return [_plain({**item, "spec": {**item["spec"], **self._wanted(item)}}) for item in sets]

    def _wanted(self, item: Object) -> dict[str, Any]:
        sleeps = item["metadata"]["labels"][PROFILE] in self.asleep
        return {"template": _template(item), "replicas": 0 if sleeps else item["spec"]["replicas"]}

    def pods(self, labels: Mapping[str, str]) -> list[Any]:
        sets = [item for item in self.objects if item["kind"] == "StatefulSet" and self._wanted(item)["replicas"]]
        there = [self._pod(item) for item in sets if f"{item['metadata']['name']}-0" not in self.lost]
        return sorted(there, key=lambda pod: str(pod.metadata.name))

    def _pod(self, item: Object) -> Any:
        name, template = f"{item['metadata']['name']}-0", _template(item)
        ready = name not in (*self.ill, *self.waiting)
        waits = NS(reason=self.waiting[name], message="") if name in self.waiting else None
        engine = NS(
            state=NS(waiting=waits, terminated=None), ready=ready, restart_count=0, last_state=None, image_id="sha256:1"
        )
        condition = NS(type="Ready", status="True", last_transition_time=datetime.fromisoformat(AT))
        made = _plain(template)
        made.metadata.name, made.metadata.uid, made.metadata.labels = name, name, dict(template["metadata"]["labels"])
        made.metadata.annotations = {CONFIG_HASH: item["metadata"]["annotations"][CONFIG_HASH]}
        made.spec.node_name = template["spec"]["nodeSelector"]["kubernetes.io/hostname"]
        for container in made.spec.containers:
            container.env = []
        made.status = NS(
            phase="Running", container_statuses=[engine], init_container_statuses=[],
            start_time=datetime.fromisoformat(AT), conditions=[condition] if ready else [],
        )  # fmt: skip
        return made

    def told(self, pod: str) -> dict[str, Any] | None:
        return self.supervisors.get(pod)

    def warnings(self) -> dict[str, str]:
        return self.events

    def nodes(self) -> dict[str, Any]:
        return {f"spark{n}": {"ready": True} for n in range(1, 9)}

    def stream(self, pod: str, *, previous: bool = False, follow: bool = False) -> Iterator[str]:
        yield f"{pod} speaks"


def _template(item: Object) -> dict[str, Any]:
    template = dict(item["spec"]["template"])
    assert {PROFILE, RANK} <= set(template["metadata"]["labels"])
    volumes = [_volume(volume) for volume in template["spec"]["volumes"]]
    return {**template, "spec": {**template["spec"], "volumes": volumes}}


def _volume(volume: Object) -> dict[str, Any]:
    secret = {"secret_name": volume["secret"]["secretName"]} if "secret" in volume else None
    return {"name": volume["name"], "secret": secret}


def _record(objects: Sequence[Object]) -> dict[str, Any]:
    (told,) = FleetCluster(objects).records()
    return told


def _plain(data: Any) -> Any:
    """Labels stay a mapping; all else is read by attributes, as Kubernetes' client has it."""
    if isinstance(data, Mapping):
        kept = {"labels", "annotations", "nodeSelector"}
        return NS(**{_snake(key): value if key in kept else _plain(value) for key, value in data.items()})
    return [_plain(item) for item in data] if isinstance(data, list) else data


def _snake(key: str) -> str:
    return {"nodeSelector": "node_selector"}.get(key, key.replace("/", "_"))
