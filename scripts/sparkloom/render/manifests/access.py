"""Where the group lives, how it is reached (rank 0 by its API, each rank by name), by whom, and who may evict it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkloom.inputs.cluster import Cluster, Destination
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


def network_policies(launch: Launch, cluster: Cluster) -> list[dict[str, Any]]:
    """Whom an engine hears and whom it reaches. Two objects: of one with both directions K3s' controller lets pass
    from one rank to another's API what only the way in allows."""
    return [
        _policy(launch, cluster, "", ingress=_heard(launch)),
        _policy(launch, cluster, "-out", egress=_reached(cluster)),
    ]


def _policy(launch: Launch, cluster: Cluster, suffix: str, **ways: list[dict[str, Any]]) -> dict[str, Any]:
    metadata = names.metadata(launch, cluster.namespace, names.group(launch.group) + suffix)
    return names.network_policy(metadata, names.selector(launch), **ways)


def _heard(launch: Launch) -> list[dict[str, Any]]:
    """Engine port from this namespace, where the router is, and from labelled namespaces only.

    /health and /metrics take no key. The rails are no part of the cluster network: no policy covers them.
    """
    peers = [{"podSelector": {}}, {"namespaceSelector": {"matchLabels": {ACCESS: "true"}}}]
    return [{"from": peers, "ports": [{"protocol": "TCP", "port": launch.port}]}]


def _reached(cluster: Cluster) -> list[dict[str, Any]]:
    """The question for a name. An engine that somebody took over would else reach the cluster, the LAN and the world:
    it has its weights, and no token for the API server."""
    return [name_service(), *map(_granted, cluster.egress)]


def name_service() -> dict[str, Any]:
    """A way out to whoever answers for names."""
    asked = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    asked_pods = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    return {"to": [asked_pods], "ports": asked}


def api_server(places: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Ways out to the cluster's API, by its addresses and ports."""
    mask = {True: 128, False: 32}
    return [
        {"to": [{"ipBlock": {"cidr": f"{ip}/{mask[':' in ip]}"}}], "ports": [{"protocol": "TCP", "port": port}]}
        for ip, port in places
    ]


def _granted(way: Destination) -> dict[str, Any]:
    named = {"ports": [{"protocol": "TCP", "port": port} for port in way.ports]} if way.ports else {}
    return {"to": [{"ipBlock": {"cidr": way.cidr}}], **named}


def disruption_budget(launch: Launch, namespace: str) -> dict[str, Any]:
    """A drain takes no rank away: one less is none at all. A rank that is broken anyway may go."""
    spec = {
        "maxUnavailable": 0,
        "selector": {"matchLabels": names.selector(launch)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return names.manifest("policy/v1", "PodDisruptionBudget", _metadata(launch, namespace), spec=spec)


def headless_name(launch: Launch) -> str:
    return f"{names.group(launch.group)}-ranks"


def services(launch: Launch, namespace: str) -> list[dict[str, Any]]:
    every = names.metadata(launch, namespace, headless_name(launch))
    ranks = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": names.selector(launch)}
    api = {"api": launch.port, supervision.PROBES: ports.PROBES}
    return [
        names.manifest("v1", "Service", every, spec=ranks),
        names.service(_metadata(launch, namespace), names.selector(launch, 0), api),
    ]


def _metadata(launch: Launch, namespace: str) -> dict[str, Any]:
    return names.metadata(launch, namespace, names.group(launch.group))
