"""Where the group lives, how it is reached (rank 0 by its API, each rank by name), by whom, and who may evict it."""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import names

ACCESS = "sparkloom/engine-access"  # label of a namespace whose pods may reach the engine port


def namespace(cluster: Cluster) -> dict[str, Any]:
    """The only place where privileged pods may run.

    Privileged even in `device-plugin` mode: the weights and the kernel cache are hostPath volumes, which both stricter
    Pod Security levels forbid.
    """
    level = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": cluster.namespace, "labels": {**names.PART_OF, **level}},
    }


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


def headless_name(launch: Launch) -> str:
    return f"{names.group(launch.profile.name)}-ranks"


def services(launch: Launch, namespace: str) -> list[dict[str, Any]]:
    port = {"name": "api", "port": launch.port, "targetPort": "api", "protocol": "TCP"}
    return [_headless(launch, namespace), _api(launch, namespace, port)]


def _headless(launch: Launch, namespace: str) -> dict[str, Any]:
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": names.selector(launch)}
    return _service(launch, namespace, headless_name(launch), spec)


def _api(launch: Launch, namespace: str, port: dict[str, Any]) -> dict[str, Any]:
    spec = {"type": "ClusterIP", "selector": names.selector(launch, 0), "ports": [port]}
    return _service(launch, namespace, names.group(launch.profile.name), spec)


def _service(launch: Launch, namespace: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": names.metadata(launch, namespace, name), "spec": spec}
