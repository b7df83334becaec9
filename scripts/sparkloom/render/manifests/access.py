"""Where the group lives, how it is reached (rank 0 by its API, each rank by name), by whom, and who may evict it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparkloom.inputs.cluster import Cluster, Destination
from sparkloom.launch import ports
from sparkloom.launch.resolve import Launch
from sparkloom.render import template
from sparkloom.render.manifests import names, supervision

ACCESS = "sparkloom/engine-access"  # label of a namespace whose pods may reach the engine port


def namespace(cluster: Cluster) -> dict[str, Any]:
    return template.one("manifests/namespace", namespace=cluster.namespace)


def priority_class() -> dict[str, Any]:
    return template.one("manifests/priority", name=names.PRIORITY)


def of_group(launch: Launch, cluster: Cluster) -> list[dict[str, Any]]:
    """Policies, disruption budget and Services of one group."""
    return template.objects(
        "manifests/access",
        name=names.group(launch.group),
        headless=headless_name(launch),
        namespace=cluster.namespace,
        labels=names.labels(launch),
        selector=names.selector(launch),
        head=names.selector(launch, 0),
        granted={ACCESS: "true"},
        reached=[name_service(), *map(_granted, cluster.egress)],
        port=launch.port,
        probes=supervision.PROBES,
        probe_port=ports.PROBES,
    )


def headless_name(launch: Launch) -> str:
    return f"{names.group(launch.group)}-ranks"


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
