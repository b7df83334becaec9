"""How the group is reached: its API through rank 0, and a stable name for every rank."""

from __future__ import annotations

from typing import Any

from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import names


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
