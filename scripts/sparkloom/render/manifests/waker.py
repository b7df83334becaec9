"""The waker of groups on demand: a small pod that scales their StatefulSets, and holds requests meanwhile.

Its Python comes out of a ConfigMap, over an image that has Python and nothing of ours. It may scale the StatefulSets
that are named here and no other, reads pods and StatefulSets, and holds no Secret. A new one is there before the old
one goes; a Lease says which of both decides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.onnode.now.gather import ROUTER_PORT
from sparkloom.onnode.now.labels import ROUTER
from sparkloom.onnode.waker import lease, server
from sparkloom.onnode.waker import main as program
from sparkloom.onnode.waker.state import GROUPS, Group
from sparkloom.render import pack
from sparkloom.render.manifests import access, names, pod_defaults
from sparkloom.render.manifests.page import NOBODY
from sparkloom.render.manifests.router import METRICS

NAME = "waker"
PORT = program.PORT
PROGRAM, TOLD = "/waker/program", "/waker/groups"
SELECTOR = {"app.kubernetes.io/name": NAME, **names.PART_OF}
LABELS = {**SELECTOR, "app.kubernetes.io/component": NAME}
MEMORY = {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "192Mi"}}
GRACE = 30  # seconds, of which a pod that leaves takes five


def waker(
    image: str, cluster: Cluster, groups: Sequence[Group], api: Sequence[tuple[str, int]]
) -> list[dict[str, Any]]:
    """Objects in the order to apply them; `api`: the addresses and ports of the cluster's API."""
    space = cluster.namespace
    told = json.dumps({"groups": [asdict(group) for group in groups]}, indent=1) + "\n"
    return [
        access.priority_class(),
        _object("v1", "ServiceAccount", space, automountServiceAccountToken=False),
        *_rights(space, groups),
        *_policies(space, api),
        _object("coordination.k8s.io/v1", "Lease", space, lease.NAME),
        _object("v1", "ConfigMap", space, f"{NAME}-program", binaryData={NAME: pack.program(NAME).base64}),
        _object("v1", "ConfigMap", space, f"{NAME}-groups", data={GROUPS: told}),
        names.service(_metadata(space), SELECTOR, {"http": PORT}),
        _deployment(image, cluster),
    ]


def _metadata(space: str, name: str = NAME) -> dict[str, Any]:
    return {"name": name, "namespace": space, "labels": dict(LABELS)}


def _object(api: str, kind: str, space: str, name: str = NAME, **content: Any) -> dict[str, Any]:
    return names.manifest(api, kind, _metadata(space, name), **content)


def _rights(space: str, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """To scale these StatefulSets, not to change them: an image or a volume is nobody's to choose here."""
    sets = sorted(name for group in groups for name in group.sets)
    reads = ["get", "list"]
    rules = [
        {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": reads},
        {"apiGroups": [""], "resources": ["pods"], "verbs": reads},
        {"apiGroups": ["apps"], "resources": ["statefulsets/scale"], "verbs": ["patch"], "resourceNames": sets},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"],
         "resourceNames": [lease.NAME]},
    ]  # fmt: skip
    who = [{"kind": "ServiceAccount", "name": NAME, "namespace": space}]
    role = {"apiGroup": names.RBAC, "kind": "Role", "name": NAME}
    return [
        _object(names.RIGHTS, "Role", space, rules=rules),
        _object(names.RIGHTS, "RoleBinding", space, roleRef=role, subjects=who),
    ]


def _policies(space: str, api: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Whom it hears and whom it reaches; and, beside the others' own policies, which add up, that the router may lead
    here and be asked for its figures, and that ranks 0 say whether they are ready."""
    router, mine = {"podSelector": {"matchLabels": dict(ROUTER)}}, {"podSelector": {"matchLabels": dict(SELECTOR)}}
    heads = {**names.ENGINES, names.RANK: "0"}
    watcher = {"namespaceSelector": {}, "podSelector": {"matchLabels": dict(METRICS)}}
    here, probes, figures = pod_defaults.tcp(PORT), pod_defaults.tcp(ports.PROBES), pod_defaults.tcp(ROUTER_PORT)
    reached = [
        *access.api_server(api),
        {"to": [{"podSelector": {"matchLabels": heads}}], "ports": probes},
        {"to": [router], "ports": figures},
        access.name_service(),
    ]

    def named(suffix: str) -> dict[str, Any]:
        return _metadata(space, NAME + suffix)

    return [
        names.network_policy(named(""), SELECTOR, ingress=[{"from": [router, watcher], "ports": here}]),
        names.network_policy(named("-out"), SELECTOR, egress=reached),
        names.network_policy(named("-asks"), heads, ingress=[{"from": [mine], "ports": probes}]),
        names.network_policy(named("-counts"), ROUTER, ingress=[{"from": [mine], "ports": figures}]),
        names.network_policy(named("-asked"), ROUTER, egress=[{"to": [mine], "ports": here}]),
    ]


def _words(space: str) -> list[str]:
    told = ["--groups", f"{TOLD}/{GROUPS}", "--namespace", space, "--port", str(PORT)]
    asked = ["--probes", str(ports.PROBES), "--figures", str(ROUTER_PORT)]
    return ["python3", "-I", "-B", f"{PROGRAM}/{NAME}", *told, *asked]


def _deployment(image: str, cluster: Cluster) -> dict[str, Any]:
    """Renewed when its program is another; which groups there are is read while it runs."""
    seen = json.dumps([pack.program(NAME).stamp, _words(cluster.namespace)]).encode()
    inner = {
        "labels": dict(LABELS),
        "annotations": {names.CONFIG_HASH: hashlib.sha256(seen).hexdigest()[:16]},
    }
    template = {"metadata": inner, "spec": _pod(image, cluster)}
    return _object("apps/v1", "Deployment", cluster.namespace, spec=pod_defaults.surging(SELECTOR, template, kept=2))


def _pod(image: str, cluster: Cluster) -> dict[str, Any]:
    def asked(path: str, **more: int) -> dict[str, Any]:
        return {"httpGet": {"path": path, "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 10, **more}

    mounted: Mapping[str, str] = {f"{NAME}-program": PROGRAM, f"{NAME}-groups": TOLD}
    container = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": _words(cluster.namespace),
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": MEMORY,
        "readinessProbe": asked(server.READY, periodSeconds=3),
        "livenessProbe": asked(server.LIVE, periodSeconds=30, failureThreshold=5),
        "securityContext": pod_defaults.locked(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in mounted.items()],
    }
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        **pod_defaults.any_spark(cluster),
        "terminationGracePeriodSeconds": GRACE,
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},  # names here are whole ones
        "securityContext": pod_defaults.unprivileged(NOBODY),
        "containers": [container],
        "volumes": [{"name": name, "configMap": {"name": name}} for name in mounted],
    }
