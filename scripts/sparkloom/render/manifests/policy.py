"""Who may reach the engines, and who may evict them."""

from __future__ import annotations

from typing import Any

from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import names

ACCESS = "sparkloom/engine-access"  # label of a namespace whose pods may reach the engine port


def network_policy(launch: Launch, namespace: str) -> dict[str, Any]:
    """Engine port from this namespace, labelled namespaces and K3s' own Traefik only.

    /health and /metrics take no key. The rails are no part of the cluster network: no policy covers them.
    """
    peers = [
        {"podSelector": {}},
        {"namespaceSelector": {"matchLabels": {ACCESS: "true"}}},
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "traefik"}},
        },
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(launch, namespace, names.group(launch.profile.name)),
        "spec": {
            "podSelector": {"matchLabels": names.selector(launch)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": peers, "ports": [{"protocol": "TCP", "port": launch.port}]}],
        },
    }


def disruption_budget(launch: Launch, namespace: str) -> dict[str, Any]:
    """A drain takes no rank away: one less is none at all. A rank that is broken anyway may go."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(launch, namespace, names.group(launch.profile.name)),
        "spec": {
            "maxUnavailable": 0,
            "selector": {"matchLabels": names.selector(launch)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
