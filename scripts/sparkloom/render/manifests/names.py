"""What objects are called and how they are found again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparkloom.inputs.group_name import label as group
from sparkloom.launch.resolve import Launch
from sparkloom.onnode.now.labels import CONFIG_HASH, ENGINES, PART_OF, PROFILE, RANK

__all__ = [
    "CONFIG_HASH", "ENGINES", "PART_OF", "PRIORITY", "PROFILE", "RANK", "RIGHTS", "group",
    "labels", "manifest", "marked", "metadata", "network_policy", "rank", "selector", "service",
]  # fmt: skip

RIGHTS = "rbac.authorization.k8s.io/v1"
PRIORITY = "sparkloom-engine"  # the engines' PriorityClass
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def rank(launch: Launch, index: int) -> str:
    return f"{group(launch.group)}-rank{index}"


def marked(name: str) -> str:
    """The value of the label by which all objects of a group are found."""
    return name if _LABEL.fullmatch(name) else group(name)


def selector(launch: Launch, index: int | None = None) -> dict[str, str]:
    """Labels that pick the group's pods, or those of one rank; they never change for a running workload."""
    chosen = {PROFILE: marked(launch.group)}
    return chosen if index is None else {**chosen, RANK: str(index)}


def labels(launch: Launch, index: int | None = None) -> dict[str, str]:
    described = {
        "app.kubernetes.io/name": launch.engine,
        "app.kubernetes.io/instance": group(launch.group),
        **ENGINES,
    }
    return {**described, **selector(launch, index)}


def manifest(api: str, kind: str, metadata: dict[str, Any], **content: Any) -> dict[str, Any]:
    """One object as the API server takes it; `content` is mostly its spec."""
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **content}


def service(
    metadata: dict[str, Any], selector: Mapping[str, str], ports: Mapping[str, int], kind: str = "ClusterIP"
) -> dict[str, Any]:
    """One address for these pods; each port leads to the container's port of the same name."""
    listed = [{"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in ports.items()]
    return manifest("v1", "Service", metadata, spec={"type": kind, "selector": dict(selector), "ports": listed})


def network_policy(
    metadata: dict[str, Any], pods: Mapping[str, str], **ways: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """`ingress` or `egress`. Without rules nobody passes, and the key is left out: the API server keeps an empty list
    as something else, and each apply would change it."""
    spec = {"podSelector": {"matchLabels": dict(pods)}, "policyTypes": [way.capitalize() for way in ways]}
    rules = {way: list(listed) for way, listed in ways.items() if listed}
    return manifest("networking.k8s.io/v1", "NetworkPolicy", metadata, spec={**spec, **rules})


def metadata(launch: Launch, namespace: str, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": labels(launch)}
