"""Where the group lives, how it is reached (rank 0 by its API, each rank by name), by whom, and who may evict it."""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import names, supervision

ACCESS = "sparkloom/engine-access"  # label of a namespace whose pods may reach the engine port


def namespace(cluster: Cluster) -> dict[str, Any]:
    """The only place where privileged pods may run.

    Privileged even in `device-plugin` mode: the weights and the kernel cache are hostPath volumes, which both stricter
    Pod Security levels forbid.
    """
    level = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return names.manifest("v1", "Namespace", {"name": cluster.namespace, "labels": {**names.PART_OF, **level}})


def priority_class() -> dict[str, Any]:
    """A node in need of disk space ends others' pods before an engine; an engine ends nobody's to get its place."""
    return names.manifest(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        {"name": names.PRIORITY, "labels": dict(names.PART_OF)},
        value=1_000_000,  # 0 is everybody's, 2 * 10^9 the system's
        preemptionPolicy="Never",
        globalDefault=False,
        description="Engines that sparkloom serves",
    )


def network_policy(launch: Launch, namespace: str) -> dict[str, Any]:
    """Engine port from this namespace, labelled namespaces and K3s' own Traefik only.

    /health and /metrics take no key; Traefik alone may ask a supervisor about one. The rails are no part of the cluster
    network: no policy covers them.
    """
    traefik = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "traefik"}},
    }
    peers = [{"podSelector": {}}, {"namespaceSelector": {"matchLabels": {ACCESS: "true"}}}, traefik]
    ingress = [
        {"from": peers, "ports": [{"protocol": "TCP", "port": launch.port}]},
        {"from": [traefik], "ports": [{"protocol": "TCP", "port": ports.PROBES}]},
    ]
    spec = {
        "podSelector": {"matchLabels": names.selector(launch)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
    return names.manifest("networking.k8s.io/v1", "NetworkPolicy", _metadata(launch, namespace), spec=spec)


def disruption_budget(launch: Launch, namespace: str) -> dict[str, Any]:
    """A drain takes no rank away: one less is none at all. A rank that is broken anyway may go."""
    spec = {
        "maxUnavailable": 0,
        "selector": {"matchLabels": names.selector(launch)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return names.manifest("policy/v1", "PodDisruptionBudget", _metadata(launch, namespace), spec=spec)


def headless_name(launch: Launch) -> str:
    return f"{names.group(launch.profile.name)}-ranks"


def services(launch: Launch, namespace: str) -> list[dict[str, Any]]:
    asked = supervision.PROBES
    listed = [
        {"name": "api", "port": launch.port, "targetPort": "api", "protocol": "TCP"},
        {"name": asked, "port": ports.PROBES, "targetPort": asked, "protocol": "TCP"},
    ]
    every = names.metadata(launch, namespace, headless_name(launch))
    ranks = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": names.selector(launch)}
    api = {"type": "ClusterIP", "selector": names.selector(launch, 0), "ports": listed}
    return [
        names.manifest("v1", "Service", every, spec=ranks),
        names.manifest("v1", "Service", _metadata(launch, namespace), spec=api),
    ]


def _metadata(launch: Launch, namespace: str) -> dict[str, Any]:
    return names.metadata(launch, namespace, names.group(launch.profile.name))
