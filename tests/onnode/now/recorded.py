"""A site of three groups on four Sparks as its API would give it: our own objects, with what a kubelet adds to them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.onnode import key_table
from sparkloom.onnode.host_metrics import main
from sparkloom.onnode.key_table import Entry
from sparkloom.onnode.kube import JSON, MERGE, Refused, Unreached
from sparkloom.onnode.now.gather import NAMES_ONLY, SITE, SITE_MAP, Gatherer
from sparkloom.onnode.now.labels import HOSTS, PROFILE, ROUTER, STOPS
from sparkloom.onnode.page.site import JOURNAL, journalled
from sparkloom.render.manifests import names
from tests import inventories
from tests.inventories import OSS, THREE
from tests.places import REPO

OWNERS, ALICES, BOBS = "sk-owner", "sk-good", "sk-limited"
PEOPLE = ((OWNERS, "owner", True), (ALICES, "alice", True), (BOBS, "bob", False))
AT = 1_795_579_200.0  # 2026-11-25 04:00 UTC
BY = "anna@laptop, 2026-11-25 03:50 UTC"
SINCE = "2026-11-25T01:30:00Z"
PAGES = {  # as each engine spells its counters
    "glm": """vllm:num_requests_running 3.0
vllm:num_requests_waiting 1.0
vllm:kv_cache_usage_perc 0.41
vllm:generation_tokens_total {made}
""",
    OSS: """vllm:num_requests_running 1.0
vllm:num_requests_waiting 0.0
vllm:kv_cache_usage_perc 0.08
vllm:generation_tokens_total {made}
""",
    "chat": """sglang:num_running_reqs 0.0
sglang:num_queue_reqs 0.0
sglang:token_usage 0.0
sglang:spec_accept_length 2.6
sglang:generation_tokens_total {made}
""",
}
# Of the same list as it was on 2026-11-25: figures of profiles change, and are judged elsewhere.
FACTS = REPO / "tests/data/page/site.json"


class Recorded:
    """`Reached` without a cluster. `silent`: pods that do not answer; `away`: the API does not.

    `ends`: seconds that a pod takes to go.
    """

    def __init__(self, folder: Path, listed: str = THREE) -> None:
        self.folder = inventories.serving(folder, listed)
        self.facts: dict[str, Any] = json.loads(FACTS.read_text())
        self.namespace = case.cluster(self.folder).namespace
        self.pods: list[dict[str, Any]] = []
        self.sets: list[dict[str, Any]] = []
        self.maps: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.nodes = [_node(node["kubernetes_node"]) for node in self.facts["nodes"]]
        self.told: dict[str, dict[str, Any]] = {}
        self.made = dict.fromkeys(PAGES, 1000.0)
        self.silent: set[str] = set()
        self.away, self.pending = "", ""
        self.asked: list[str] = []
        self.exported: dict[str, str] = {}
        self.logs: dict[str, str] = {}
        self.used = ""
        self.changed: list[str] = []
        self.leases: list[dict[str, Any]] = []
        self.ends = 0.3
        keys = [Key(name=name, hash=hashed(key), admin=admin).entry for key, name, admin in PEOPLE]
        self.secret: dict[str, Any] = {"metadata": {"name": "client-keys"}, "data": {}}
        self.keys = keys
        for name in (JOURNAL, STOPS):
            self.maps[name] = {"metadata": {"name": name, "labels": dict(names.PART_OF)}}
        for group in self.facts["groups"]:
            self._serve(group["name"])

    def _serve(self, name: str) -> None:
        rendered = case.render_group(name, self.folder, force=True)
        launch = rendered.case.launch
        for item in rendered.objects:
            if item["kind"] == "StatefulSet":
                pod = _pod(item)
                self.sets.append(item)
                self.pods.append(pod)
                self.told[pod["metadata"]["name"]] = _supervisor(pod, len(launch.ranks))
            elif item["kind"] == "ConfigMap" and item["metadata"]["name"].endswith("-record"):
                self.maps[item["metadata"]["name"]] = item
        served = {
            "group": name, "profile": launch.profile.name, "model": launch.profile.profile.model.id,
            "config_hash": rendered.digest, "transport": "roce: 4 HCAs on both rails" if len(launch.ranks) > 1 else "",
            "since": SINCE, "ready_seconds": 611.0, "engine": launch.engine, "release": launch.release,
        }  # fmt: skip
        meta = {"name": f"{names.group(name)}-served", "labels": dict(names.PART_OF)}
        self.maps[meta["name"]] = {"metadata": meta, "data": {"served.json": json.dumps(served)}}

    @property
    def keys(self) -> list[Entry]:
        return key_table.of_secret(self.secret)

    @keys.setter
    def keys(self, kept: list[Entry]) -> None:
        self.secret["data"] = {"keys": base64.b64encode(key_table.text(kept).encode()).decode()}

    @property
    def journal(self) -> list[str]:
        return journalled(self.maps[JOURNAL])

    def change(self, method: str, path: str, content: Any, kind: str = JSON) -> Any:
        """What is allowed by name, and nothing else."""
        self.changed.append(path)
        core = f"/api/v1/namespaces/{self.namespace}"
        if (method, path) == ("PUT", f"{core}/secrets/client-keys"):
            self.secret = deepcopy(content)
        elif (method, path) == ("PUT", f"{core}/configmaps/{JOURNAL}"):
            self.maps[JOURNAL] = deepcopy(content)
        elif (method, path, kind) == ("PATCH", f"{core}/configmaps/{STOPS}", MERGE):
            self.maps[STOPS].setdefault("data", {}).update(content["data"])
        elif method == "PATCH" and kind == MERGE and path.endswith("/scale") and list(content) == ["spec"]:
            self._scale(path.split("/")[-2], **content["spec"])
        else:
            raise Refused(403, f"the cluster's API answered 403 Forbidden: {method} {path}")
        return content

    def _scale(self, name: str, replicas: int) -> None:
        """As the controller of sets and a kubelet do."""
        one, pod = next(item for item in self.sets if item["metadata"]["name"] == name), f"{name}-0"
        one["spec"]["replicas"] = replicas
        if replicas:
            self.pods.append(_pod(one))
        else:
            threading.Timer(self.ends, self._ended, [pod]).start()

    def _ended(self, name: str) -> None:
        self.pods = [pod for pod in self.pods if pod["metadata"]["name"] != name]

    def tell(self) -> None:
        """What the controller knows of the site is in the cluster, as playbooks/gateway.yml writes it there."""
        self.maps[SITE_MAP] = {"metadata": {"name": SITE_MAP, "labels": dict(names.PART_OF)}, "data": {}}

    def text(self, path: str, query: Mapping[str, str]) -> str:
        assert query == {"tailLines": "200", "limitBytes": "65536"}
        return self.logs[path.split("/")[-2]]

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        self.asked.append(path)
        if self.away:
            raise Unreached(self.away)
        kind, _, name = path.rpartition("/")
        if SITE_MAP in self.maps:
            self.maps[SITE_MAP]["data"] = {SITE: json.dumps(self.facts)}
        if path == f"/api/v1/namespaces/{self.namespace}/secrets/client-keys":
            return deepcopy(self.secret)
        if kind.endswith("/configmaps"):
            return deepcopy(self.maps[name])
        listed = {
            "pods": self.pods, "configmaps": list(self.maps.values()), "nodes": self.nodes, "events": self.events,
            "statefulsets": self.sets, "leases": self.leases,
        }[name]  # fmt: skip
        if named := query.get("fieldSelector", "").partition("metadata.name=")[2]:
            listed = [one for one in listed if one["metadata"]["name"] == named]
        wanted = dict(pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair)
        chosen = [one for one in listed if wanted.items() <= one["metadata"].get("labels", {}).items()]
        if accept == NAMES_ONLY:
            chosen = [
                {"metadata": {**one["metadata"], "resourceVersion": str(hash(json.dumps(one)))}} for one in chosen
            ]
        return {"items": deepcopy(chosen)}

    def route(self, held: int) -> None:
        """A router that keeps so many requests for the pair back."""
        meta = {"name": "router-1", "labels": dict(ROUTER)}
        status = {"phase": "Running", "podIP": "10.42.0.10", "containerStatuses": [{"containerID": "containerd://1"}]}
        self.pods.append({"metadata": meta, "spec": {}, "status": status})
        self.pending = f"""# TYPE envoy_cluster_upstream_rq_pending_active gauge
envoy_cluster_upstream_rq_pending_active{{envoy_cluster_name="glm"}} {held}
envoy_cluster_upstream_rq_pending_active{{envoy_cluster_name="router-itself"}} 0
envoy_cluster_upstream_rq_active{{envoy_cluster_name="glm"}} 4
envoy_cluster_upstream_rq_active{{envoy_cluster_name="glm+waker"}} 2
envoy_cluster_upstream_rq_pending_active{{envoy_cluster_name="glm+waker"}} 0
"""

    def measure(self, at: float = AT) -> None:
        """A node-exporter on each Spark; the second one's GPU tells nothing, and the third one's file is old."""
        for number, node in enumerate(self.nodes):
            name = f"hosts-{number}"
            meta = {"name": name, "labels": dict(HOSTS)}
            spec = {"nodeName": node["metadata"]["name"]}
            self.pods.append({"metadata": meta, "spec": spec, "status": {"phase": "Running", "podIP": "10.42.0.20"}})
            ends = [(main.CERTIFICATE.name, {"certificate": "endpoint"}, at + 9e6)]
            gpu = [] if number == 1 else [("sparkloom_gpu_temperature_celsius", {"gpu": "0"}, 61.0 + number),
                                          ("sparkloom_gpu_power_watts", {"gpu": "0"}, 93.4)]  # fmt: skip
            told = [*gpu, (main.AVAILABLE.name, {}, 23.4 * 2**30), *ends]
            self.exported[name] = main.page([*told, (main.WRITTEN.name, {}, at - (600 if number == 2 else 8))])

    def ask(self, pod: Any, port: int, path: str) -> bytes:
        name = pod.metadata.name
        if name in self.exported:
            assert (port, path) == (9100, "/metrics?collect[]=textfile")
            return self.exported[name].encode()
        if name.startswith("router"):
            assert port == 9090
            return {"/stats/prometheus?filter=upstream_rq_(pending_active|active)$": self.pending,
                    "/metrics": self.used}[path].encode()  # fmt: skip
        if name in self.silent:
            raise Unreached(f"{name} does not answer: timed out")
        if path == "/status":
            assert port == 20101
            return json.dumps(self.told[name]).encode()
        group = next(group for group in PAGES if name.startswith(f"{names.group(group)}-rank"))
        return PAGES[group].format(made=self.made[group]).encode()

    def demand(self, name: str, minutes: int, replicas: int) -> None:
        """A group that is on demand, and whether it is to run now."""
        told = next(group for group in self.facts["groups"] if group["name"] == name)
        told |= {"idle_minutes": minutes, "turns": None}
        for one in self.sets:
            if one["metadata"]["labels"][PROFILE] == told["label"]:
                one["spec"]["replicas"] = replicas
        if not replicas:
            self.pods = [pod for pod in self.pods if pod["metadata"]["labels"].get(PROFILE) != told["label"]]

    def pod(self, name: str) -> dict[str, Any]:
        return next(pod for pod in self.pods if pod["metadata"]["name"] == name)

    def unready(self, name: str, **state: Any) -> None:
        """`state`: of its container, as the kubelet tells it."""
        status = self.pod(name)["status"]
        status["containerStatuses"][0] |= {"ready": False, **({"state": state} if state else {})}
        status["conditions"][1] |= {"status": "False"}

    def gathers(self, clock: Any = lambda: AT) -> Gatherer:
        return Gatherer(self, self.namespace, self.facts, clock)


def _pod(stateful: Mapping[str, Any]) -> dict[str, Any]:
    template, name = deepcopy(stateful["spec"]["template"]), f"{stateful['metadata']['name']}-0"
    spec = {**template["spec"], "nodeName": template["spec"]["nodeSelector"]["kubernetes.io/hostname"]}
    engine = {
        "name": "engine", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": SINCE}},
        "lastState": {}, "imageID": "registry@sha256:" + "a" * 64,
    }  # fmt: skip
    conditions = [{"type": "PodScheduled", "status": "True"},
                  {"type": "Ready", "status": "True", "lastTransitionTime": SINCE}]  # fmt: skip
    status = {"phase": "Running", "podIP": "10.42.0.9", "containerStatuses": [engine], "conditions": conditions}
    return {"metadata": {**template["metadata"], "name": name, "uid": name}, "spec": spec, "status": status}


def _supervisor(pod: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    transport = "NCCL transport roce: 4 HCAs" if ranks > 1 else ""
    return {"rank": int(pod["metadata"]["labels"][names.RANK]), "epoch": 1, "phase": "serving", "cause": "",
            "text": f"a token came 611 s after the start; {transport}", "serving": True, "transport": transport,
            "rails": [], "read": "r", "beat": AT, "since": AT - 9000}  # fmt: skip


def _node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def one_sleeps(site: Recorded, at: float = AT) -> None:
    """Three are on demand: the pair wakes, the shared one sleeps, the third serves."""
    site.demand("glm", 30, 1)
    site.demand(OSS, 60, 1)
    site.demand("chat", 15, 0)
    for name, phase, text in (("glm-rank0-0", "engine", "loading weights, shard 3 of 10, 38 s"),
                              ("glm-rank1-0", "checked", "rails: a net1, b net2; weights: glm")):  # fmt: skip
        site.unready(name)
        site.told[name] |= {"phase": phase, "text": text, "serving": False}
        begun = datetime.fromtimestamp(at - 95, timezone.utc).isoformat()  # noqa: UP017 - 3.10
        site.pod(name)["status"]["startTime"] = begun


def one_is_stopped(site: Recorded) -> None:
    site.demand("chat", 15, 0)
    site.maps[STOPS]["data"] = {"chat": BY}


def stop(site: Recorded, name: str) -> None:
    """It is stopped, and is not on demand."""
    site.maps[STOPS]["data"] = {name: BY}
    for one in site.sets:
        if one["metadata"]["labels"][PROFILE] == name:
            one["spec"]["replicas"] = 0
    site.pods = [pod for pod in site.pods if pod["metadata"]["labels"].get(PROFILE) != name]


def one_place(site: Recorded) -> None:
    """Of the Spark of the third, which is stopped, the second has all: a list of before had them so."""
    stop(site, "chat")
    record = site.maps[f"{OSS}-record"]["data"]
    told = json.loads(record["record.json"])
    told["ranks"][0]["node"] = "spark4"
    record["record.json"] = json.dumps(told)
    site.pod(f"{OSS}-rank0-0")["spec"]["nodeName"] = "spark4"


def two_fail(site: Recorded) -> None:
    """The pair lost a rail and starts again; the shared Spark cannot get its image."""
    rank0, rank1 = "glm-rank0-0", "glm-rank1-0"
    ended = {"epoch": 4, "why": "rank 1 on spark2: rail b: net2 has no carrier: cable", "at": AT - 40}
    for name, phase, text in ((rank0, "engine", "loading weights, shard 3 of 10, 38 s"),
                              (rank1, "checked", "rails: a net1, b net2; weights: glm")):  # fmt: skip
        site.unready(name)
        site.told[name] |= {"phase": phase, "text": text, "serving": False, "epoch": 5, "ended": ended}
    site.told[rank1] |= {"cause": "the engine was killed", "cause_phase": "failed", "cause_epoch": 4}
    site.pod(rank1)["status"]["containerStatuses"][0]["restartCount"] = 2
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "<img src=x onerror=alert(1)>"'}
    site.unready("chat-rank0-0", waiting=waiting)
    site.pod("chat-rank0-0")["status"]["phase"] = "Pending"
