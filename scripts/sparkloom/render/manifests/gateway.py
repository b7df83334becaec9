"""The way in to the router: a Service whose ports K3s' load balancer opens on every node, where Envoy ends TLS itself.

On a cluster that somebody has, an Ingress of that cluster instead, which ends TLS with the same certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.render.manifests import names, router

NAME = "gateway"
TLS_SECRET = router.CERTIFICATE
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": NAME, **names.PART_OF}
METADATA = {"name": NAME, "labels": LABELS}
SERVICE, INGRESS = ("v1", "Service"), ("networking.k8s.io/v1", "Ingress")


def ingress_class(cluster: Cluster, told: str) -> str:
    """As `gateway_ingress` says; empty where the nodes' ports lead in."""
    return told if told != "auto" else "traefik" if cluster.kubernetes.provider == "existing" else ""


def service(namespace: str, port: int) -> dict[str, Any]:
    """Port 80 sends clients to 443; beside another one it stays whoever's it is."""
    opened = {"https": port, **({"http": 80} if port == 443 else {})}
    ports = [{"name": name, "port": at, "targetPort": name, "protocol": "TCP"} for name, at in opened.items()]
    spec = {"type": "LoadBalancer", "selector": dict(router.SELECTOR), "ports": ports}
    return names.manifest(*SERVICE, {**METADATA, "namespace": namespace}, spec=spec)


def ingress(
    namespace: str, class_name: str, hosts: Sequence[str], annotations: Mapping[str, str], *, page: bool
) -> dict[str, Any]:
    """Of these hosts what the router may answer; it closes everything else."""
    there = {"service": {"name": router.NAME, "port": {"name": "http"}}}
    led = [("/v1", "Prefix"), *([("/", "Exact"), ("/page", "Prefix")] if page else [])]
    paths = [{"path": path, "pathType": kind, "backend": there} for path, kind in led]
    spec = {
        "ingressClassName": class_name,
        "tls": [{"hosts": list(hosts), "secretName": TLS_SECRET}],
        "rules": [{"host": host, "http": {"paths": paths}} for host in hosts],
    }
    metadata = {**METADATA, "namespace": namespace, "annotations": dict(annotations)}
    return names.manifest(*INGRESS, metadata, spec=spec)
