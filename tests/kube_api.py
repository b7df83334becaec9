"""An API server on loopback that keeps objects, and does with sets what their controllers do: pods that come and go.

Enough of it for Ansible's own modules and Kubernetes' own client. A pod is ready at once and takes its time to end.
Who asks may do what the administrator's role lets him do, and no more.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests import rights

Object = dict[str, Any]
ENDS = 0.7  # seconds that a pod takes to go
DIALS = 30.0
KINDS = {
    "v1": {
        "pods": "Pod",
        "configmaps": "ConfigMap",
        "secrets": "Secret",
        "services": "Service",
        "namespaces": "Namespace",
        "nodes": "Node",
        "events": "Event",
    },
    "coordination.k8s.io/v1": {"leases": "Lease"},
    "apps/v1": {"statefulsets": "StatefulSet", "deployments": "Deployment"},
    "networking.k8s.io/v1": {"networkpolicies": "NetworkPolicy"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "scheduling.k8s.io/v1": {"priorityclasses": "PriorityClass"},
}
GLOBAL = ("Namespace", "Node", "PriorityClass")
OWNERS = ("StatefulSet", "Deployment")


class Cluster:
    """`seen`: who had pods at once, each time that it changed; `done`: method and name of all that was written.
    `silent`: pods on a node that is off: who asks in them waits as long as an API server waits for a kubelet.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.going: dict[str, float] = {}
        self.seen: list[frozenset[str]] = []
        self.done: list[str] = []
        self.silent: set[str] = set()
        self.lock = threading.RLock()

    def put(self, *items: Object) -> None:
        with self.lock:
            for item in items:
                self.objects[item["kind"], item["metadata"]["name"]] = json.loads(json.dumps(item))
            self.settle()

    def settle(self) -> None:
        """As controllers and kubelets would by now."""
        now = time.monotonic()
        wanted = {
            f"{name}-0": item
            for (kind, name), item in self.objects.items()
            if kind in OWNERS and item["spec"].get("replicas", 1)
        }
        for (kind, name), item in list(self.objects.items()):
            if kind == "Pod" and name not in wanted:
                if now > self.going.setdefault(name, now + ENDS):
                    del self.objects[kind, name], self.going[name]
                else:
                    item["metadata"]["deletionTimestamp"] = "2026-11-25T00:00:00Z"
        for name, item in wanted.items():
            template = item["spec"]["template"]
            metadata = {**template["metadata"], "name": name, "namespace": "sparkloom"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec", {})}
            engine = {"name": "engine", "ready": True, "restartCount": 0, "state": {"running": {}}}
            self.objects.setdefault(
                ("Pod", name), pod | {"status": {"phase": "Running", "containerStatuses": [engine]}}
            )
        there = frozenset(name.removesuffix("-rank0-0") for kind, name in self.objects if kind == "Pod")
        if not self.seen or self.seen[-1] != there:
            self.seen.append(there)

    def asleep(self) -> dict[str, bool]:
        """Of each engine's StatefulSet, whether no pod of it is wanted."""
        sets = {name: item for (kind, name), item in self.objects.items() if kind == "StatefulSet"}
        return {name.removesuffix("-rank0"): not item["spec"]["replicas"] for name, item in sets.items()}


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Cluster, Path]]:
    """With the kubeconfig that leads to it."""
    cluster = Cluster()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _body(self) -> Any:
            length = int(self.headers.get("Content-Length") or 0)
            return json.loads(self.rfile.read(length)) if length else {}

        def _answer(self) -> None:
            asked = self._body()
            if any(f"/pods/{name}/exec" in self.path for name in cluster.silent):
                time.sleep(DIALS)
            with cluster.lock:
                cluster.settle()
                status, told = _asked(cluster, self.command, self.path, asked)
                cluster.settle()
            if why := rights.refused(self.command, self.path):
                status, told = 403, {"kind": "Status", "status": "Failure", "code": 403, "message": why}
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PATCH = do_DELETE = do_POST = do_PUT = _answer

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    file = folder / "kubeconfig"
    file.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}], "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "sparkloom"}}],
    }))  # fmt: skip
    try:
        yield cluster, file
    finally:
        server.shutdown()


def _asked(cluster: Cluster, method: str, path: str, body: Object) -> tuple[int, Object]:
    split = urlsplit(path)
    words, query = split.path.strip("/").split("/"), parse_qs(split.query)
    if split.path == "/version":
        return 200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
    if words == ["api"]:
        return 200, {"kind": "APIVersions", "versions": ["v1"]}
    if words == ["apis"]:
        version = {"groupVersion": "apps/v1", "version": "v1"}
        groups = [{"name": "apps", "versions": [version], "preferredVersion": version}]
        return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    group = "v1" if words[0] == "api" else "/".join(words[1:3])
    rest = words[2:] if words[0] == "api" else words[3:]
    if not rest:
        verbs = ["get", "list", "patch", "delete", "create", "update"]
        resources = [
            {
                "name": plural,
                "kind": kind,
                "singularName": kind.lower(),
                "namespaced": kind not in GLOBAL,
                "verbs": verbs,
            }
            for plural, kind in KINDS[group].items()
        ]
        return 200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources}
    plural, *named = rest[2:] if rest[0] == "namespaces" and len(rest) > 2 else rest
    kind = KINDS[group][plural]
    if not named and method == "GET":
        items = [item for (of, _), item in cluster.objects.items() if of == kind and _picked(item, query)]
        return 200, {"kind": f"{kind}List", "apiVersion": group, "metadata": {"resourceVersion": "1"}, "items": items}
    name = named[0] if named else body["metadata"]["name"]
    there = cluster.objects.get((kind, name))
    if "dryRun" in query and method != "GET":
        return 200, _merged(there or {}, body)
    if method in ("PATCH", "POST", "PUT"):
        cluster.done.append(f"{method} {kind} {name}")
        there = cluster.objects[kind, name] = _merged(there or {}, body)
    elif method == "DELETE" and there is not None:
        cluster.done.append(f"{method} {kind} {name}")
        del cluster.objects[kind, name]
    if there is None:
        return 404, {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}
    return 200, there


def _merged(there: Mapping[str, Any], more: Mapping[str, Any]) -> Object:
    merged = dict(there)
    for key, value in more.items():
        merged[key] = _merged(there.get(key) or {}, value) if isinstance(value, Mapping) else value
    return {key: value for key, value in merged.items() if value is not None}


def _picked(item: Object, query: Mapping[str, list[str]]) -> bool:
    labels = item["metadata"].get("labels") or {}
    named = ",".join(query.get("fieldSelector", [])).partition("metadata.name=")[2]
    if named and item["metadata"]["name"] != named:
        return False
    for part in _parts(",".join(query.get("labelSelector", []))):
        key, found, wanted = part.partition(" in ")
        if found:
            if labels.get(key.strip()) not in [word.strip() for word in wanted.strip(" ()").split(",")]:
                return False
        elif "!=" in part:
            if labels.get(part.partition("!=")[0]) == part.partition("!=")[2]:
                return False
        elif "=" in part:
            if labels.get(part.partition("=")[0]) != part.partition("=")[2]:
                return False
        elif part and part not in labels:
            return False
    return True


def _parts(selector: str) -> list[str]:
    """By the commas that stand in no brackets."""
    parts, depth = [""], 0
    for sign in selector:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
