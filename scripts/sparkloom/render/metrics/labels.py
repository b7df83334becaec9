"""What objects of the metrics are called, and by which labels each kind of pod that is scraped is found."""

from __future__ import annotations

from typing import Any

from sparkloom.onnode.now.gather import HOSTS_PORT as HOSTS_PORT
from sparkloom.onnode.now.gather import ROUTER_PORT as ROUTER_PORT
from sparkloom.onnode.now.labels import HOSTS as HOSTS
from sparkloom.render.manifests import names

COMPONENT = {"app.kubernetes.io/component": "metrics"}
OURS = {**COMPONENT, **names.PART_OF}
NAME = "app.kubernetes.io/name"
PROMETHEUS = {NAME: "prometheus"}  # as its charts and its operator call it
ROUTER = {NAME: "router"}
WAKER = {NAME: "waker"}
PROMETHEUS_PORT = 9090
READER = "sparkloom/metrics-access"  # label of a namespace whose pods may ask the Prometheus that we install


def meta(name: str, namespace: str, more: dict[str, str] | None = None, **content: Any) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": {**OURS, **(more or {})}, **content}
