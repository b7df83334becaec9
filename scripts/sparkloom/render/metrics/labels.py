"""What objects of the metrics are called, and by which labels each kind of pod that is scraped is found."""

from __future__ import annotations

from typing import Any

from sparkloom.render.manifests import names

COMPONENT = {"app.kubernetes.io/component": "metrics"}
OURS = {**COMPONENT, **names.PART_OF}
NAME = "app.kubernetes.io/name"
HOSTS = {NAME: "sparkloom-hosts"}
PROMETHEUS = {NAME: "prometheus"}  # as its charts and its operator call it
ROUTER = {NAME: "router"}
ROUTER_PORT = 9090
WAKER = {NAME: "waker"}
HOSTS_PORT = 9100
PROMETHEUS_PORT = 9090
READER = "sparkloom/metrics-access"  # label of a namespace whose pods may ask the Prometheus that we install


def meta(name: str, namespace: str, more: dict[str, str] | None = None, **content: Any) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": {**OURS, **(more or {})}, **content}
