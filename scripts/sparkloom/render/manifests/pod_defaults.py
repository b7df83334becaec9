"""What pods beside the engines have in common: not root, nothing writable, no capability; where they may be.

Router, page, waker, node-exporter, Prometheus: each of their modules says what is its own.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names

GONE = 20  # seconds after which a pod of a Spark that does not answer is made anew elsewhere; the cluster notices in 40


def locked() -> dict[str, Any]:
    """A container's securityContext."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def unprivileged(user: int, **more: int) -> dict[str, Any]:
    """A pod's securityContext."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        **more,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def on_sparks(cluster: Cluster) -> dict[str, Any]:
    """An affinity: Sparks only. A server beside them has no GPU and no rails, and an engine is what is looked after."""
    hosts = sorted(node.kubernetes_node for node in cluster.nodes)
    named = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": hosts}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}}


def any_spark(cluster: Cluster) -> dict[str, Any]:
    """Where a pod without a GPU may be. Away from a Spark that is gone within a minute: ranks wait for theirs."""
    left = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": GONE}
        for why in ("not-ready", "unreachable")
    ]
    return {
        "priorityClassName": names.PRIORITY,
        "affinity": on_sparks(cluster),
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, *left],
    }


def tcp(*numbers: int) -> list[dict[str, Any]]:
    """Ports, as a NetworkPolicy names them."""
    return [{"protocol": "TCP", "port": number} for number in numbers]
