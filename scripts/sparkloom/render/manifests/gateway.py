"""The endpoint that clients use: K3s' own Traefik ends TLS and passes `/v1` on to rank 0, and nothing else.

The engine checks the key itself; for one that cannot (TensorRT-LLM) Traefik asks rank 0's supervisor about each request
first, and nothing that it refuses reaches the engine. Other paths (/health, /metrics, weight updates, aborts) have no
route.
Streams pass as they come: Traefik flushes `text/event-stream` at once, and a client that leaves ends the request at
the engine too. Only the first byte of an answer is waited for with a limit, which a long prompt behind a queue needs.
"""

from __future__ import annotations

from typing import Any

from sparkloom.launch import ports
from sparkloom.launch.resolve import Launch
from sparkloom.onnode.rank.order import KEY_PATH
from sparkloom.render.manifests import keyring, names

API = "traefik.io/v1alpha1"
NAME = "gateway"
TLS_SECRET = "gateway-tls"
PATH = "PathPrefix(`/v1`)"
ENTRY = "websecure"  # K3s' name of port 443
LABELS = {"app.kubernetes.io/name": "gateway", "app.kubernetes.io/component": "gateway", **names.PART_OF}


def gateway(launch: Launch, namespace: str, timeout: int) -> list[dict[str, Any]]:
    """Objects in the order to apply them; the Secrets they name are made elsewhere and never rendered."""
    guard = [_guard(launch, namespace)] if keyring.by_supervisor(launch) else []
    return [_transport(namespace, timeout), _store(namespace), *guard, _route(launch, namespace)]


def _object(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": dict(LABELS)}
    return names.manifest(API, kind, metadata, spec=spec)


def _transport(namespace: str, timeout: int) -> dict[str, Any]:
    """Towards the engine: found within seconds, then as long as it takes.

    A connection that idles looks like a request to a rank that drains: it would hold every stop up for 40 s.
    """
    times = {"dialTimeout": "10s", "responseHeaderTimeout": f"{timeout}s", "idleConnTimeout": "3s"}
    return _object("ServersTransport", NAME, namespace, {"forwardingTimeouts": times})


def _store(namespace: str) -> dict[str, Any]:
    """Who asks by address sends no name: without a default he would get Traefik's own certificate."""
    return _object("TLSStore", "default", namespace, {"defaultCertificate": {"secretName": TLS_SECRET}})


def _guard(launch: Launch, namespace: str) -> dict[str, Any]:
    """A supervisor that cannot be asked lets nobody in."""
    where = f"{names.group(launch.profile.name)}.{namespace}.svc.cluster.local:{ports.PROBES}"
    asked = {"address": f"http://{where}{KEY_PATH}", "authRequestHeaders": ["Authorization"]}
    return _object("Middleware", NAME, namespace, {"forwardAuth": asked})


def _route(launch: Launch, namespace: str) -> dict[str, Any]:
    service = {
        "name": names.group(launch.profile.name),
        "port": launch.port,
        "scheme": "http",
        "serversTransport": NAME,
        "passHostHeader": True,
    }
    route: dict[str, Any] = {"kind": "Rule", "match": PATH, "services": [service]}
    if keyring.by_supervisor(launch):
        route["middlewares"] = [{"name": NAME}]
    return _object(
        "IngressRoute", NAME, namespace, {"entryPoints": [ENTRY], "routes": [route], "tls": {"secretName": TLS_SECRET}}
    )
