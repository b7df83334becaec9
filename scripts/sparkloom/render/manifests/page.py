"""The page of a site: one small pod that reads what is served and shows it; it changes nothing and holds no secret.

Its server's Python and its files come out of ConfigMaps, over an image that has Python and nothing of ours. What it may
read is listed here by kind, Secrets are not among them. Only the router reaches it, as only the router looks at keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.launch import ports
from sparkloom.onnode.now.gather import ROUTER_PORT, SITE, SITE_MAP
from sparkloom.onnode.now.labels import ROUTER
from sparkloom.onnode.page import main as program
from sparkloom.onnode.page import server
from sparkloom.render import pack
from sparkloom.render.manifests import access, names, pod_defaults

NAME = "page"
PORT = program.PORT
PROGRAM, FILES = "/page/program", "/page/files"
SELECTOR = {"app.kubernetes.io/name": NAME}
LABELS = {**SELECTOR, "app.kubernetes.io/component": NAME, **names.PART_OF}
NOBODY = 65532
MEMORY = {"requests": {"cpu": "10m", "memory": "48Mi"}, "limits": {"memory": "96Mi"}}
STATIC = Path(server.__file__).with_name("static")
RBAC = "rbac.authorization.k8s.io"
API = f"{RBAC}/v1"
GROUPS = {"": ("pods", "configmaps", "events"), "apps": ("statefulsets",)}  # of its namespace, to read


def page(image: str, namespace: str, facts: Mapping[str, Any], api: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Objects in the order to apply them; `api`: the addresses and ports of the cluster's API, the one way out."""
    return [
        names.manifest("v1", "ServiceAccount", _meta(NAME, namespace), automountServiceAccountToken=False),
        *_rights(namespace),
        *_policies(namespace, api),
        names.manifest("v1", "ConfigMap", _meta(SITE_MAP, namespace), data={SITE: json.dumps(facts, indent=1) + "\n"}),
        _program(namespace),
        _files(namespace),
        names.service(_meta(NAME, namespace), SELECTOR, {"http": PORT}),
        _deployment(image, namespace),
    ]


def _meta(name: str, namespace: str = "") -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}


def across(namespace: str) -> str:
    """The name of what belongs to no namespace: two sites may share a cluster."""
    return f"{namespace}-{NAME}"


def _rights(namespace: str) -> list[dict[str, Any]]:
    """Records, pods, their events and sets in the namespace, which nodes are up; no Secret, and nothing to change."""
    reads = ["get", "list"]
    mine = [{"apiGroups": [group], "resources": list(kinds), "verbs": reads} for group, kinds in GROUPS.items()]
    nodes = [{"apiGroups": [""], "resources": ["nodes"], "verbs": reads}]
    subjects = [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]
    whole = across(namespace)
    return [
        names.manifest(API, "Role", _meta(NAME, namespace), rules=mine),
        names.manifest(API, "RoleBinding", _meta(NAME, namespace), roleRef=_role("Role", NAME), subjects=subjects),
        names.manifest(API, "ClusterRole", _meta(whole), rules=nodes),
        names.manifest(API, "ClusterRoleBinding", _meta(whole), roleRef=_role("ClusterRole", whole), subjects=subjects),
    ]


def _role(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": kind, "name": name}


def _policies(namespace: str, api: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """The router to the page; the page to the API, the engines and the router's figures; supervisors for the page.

    An object for each direction, as those of the engines (access.py says why).
    """
    router = {"podSelector": {"matchLabels": dict(ROUTER)}}
    heard = [{"from": [router], "ports": pod_defaults.tcp(PORT)}]
    reached = [
        *access.api_server(api),
        {"to": [{"podSelector": {"matchLabels": dict(names.ENGINES)}}]},
        {"to": [router], "ports": pod_defaults.tcp(ROUTER_PORT)},
    ]
    asks = [{"from": [{"podSelector": {"matchLabels": dict(SELECTOR)}}], "ports": pod_defaults.tcp(ports.PROBES)}]
    return [
        names.network_policy(_meta(NAME, namespace), SELECTOR, ingress=heard),
        names.network_policy(_meta(f"{NAME}-out", namespace), SELECTOR, egress=reached),
        names.network_policy(_meta(f"{NAME}-asks", namespace), names.ENGINES, ingress=asks),
    ]


@cache
def static() -> dict[str, str]:
    """The page's own files by name."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(STATIC.iterdir()) if _shown(file)}


def _shown(file: Path) -> bool:
    return file.is_file() and file.suffix in server.KINDS


def _program(namespace: str) -> dict[str, Any]:
    packed = {NAME: pack.program(NAME).base64}
    return names.manifest("v1", "ConfigMap", _meta(f"{NAME}-program", namespace), binaryData=packed)


def _files(namespace: str) -> dict[str, Any]:
    return names.manifest("v1", "ConfigMap", _meta(f"{NAME}-files", namespace), data=static())


def _deployment(image: str, namespace: str) -> dict[str, Any]:
    """Renewed when its program or its files are others; facts of the site are read while it runs."""
    seen = json.dumps([pack.program(NAME).stamp, static()], sort_keys=True).encode()
    digest = hashlib.sha256(seen).hexdigest()[:16]
    template = {
        "metadata": {"labels": dict(LABELS), "annotations": {names.CONFIG_HASH: digest}},
        "spec": _pod(image, namespace),
    }
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": dict(SELECTOR)},
        "template": template,
    }
    return names.manifest("apps/v1", "Deployment", _meta(NAME, namespace), spec=spec)


def _pod(image: str, namespace: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": server.LIVE, "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 10}
    words = ["--folder", FILES, "--namespace", namespace, "--port", str(PORT)]
    mounted = ((f"{NAME}-program", PROGRAM), (f"{NAME}-files", FILES))
    container = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-I", "-B", f"{PROGRAM}/{NAME}", *words],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": MEMORY,
        "readinessProbe": {**probe, "periodSeconds": 10},
        "livenessProbe": {**probe, "periodSeconds": 30, "failureThreshold": 5},
        "securityContext": pod_defaults.locked(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in mounted],
    }
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": pod_defaults.unprivileged(NOBODY),
        "containers": [container],
        "volumes": [{"name": name, "configMap": {"name": name}} for name, _ in mounted],
    }
