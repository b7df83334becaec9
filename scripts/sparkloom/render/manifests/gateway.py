"""The endpoint that clients use: K3s' own Traefik ends TLS and passes a few exact paths on to the router, nothing else.

The router knows keys, models, limits and lengths. All other paths (/health, /metrics, weight updates, aborts) have no
route, and neither has a spelling that an engine would decode to one of them.
Streams pass as they come: Traefik flushes `text/event-stream` at once, and a client that leaves ends the request at
the router too. Only the first byte of an answer is waited for with a limit, which a long prompt behind a queue needs.
Traefik's own buffer would hold a stream back until the end. A GET has no body and its answer is whole, so it passes the
buffer, which refuses one that brings more than a byte.
A short POST is read whole before it is passed on: Go's proxy reads a body's end while the other side answers already,
and one that answered first, within a few ms, was cut off in its answer (golang/go#40747; 18 of 300 here).
"""

from __future__ import annotations

from typing import Any

from sparkloom.render.manifests import names, router
from sparkloom.render.router import Terms
from sparkloom.render.router.envoy import ONE

API = "traefik.io/v1alpha1"
NAME = "gateway"
TLS_SECRET = "gateway-tls"
PLAIN, ENCRYPTED = "web", "websecure"  # K3s' names of ports 80 and 443
BODILESS, WHOLE, TO_TLS = "gateway-bodiless", "gateway-whole", "gateway-to-tls"
READ_WHOLE = 1 << 20  # bytes; nobody answers a longer one before its end was read
LABELS = {"app.kubernetes.io/name": "gateway", "app.kubernetes.io/component": "gateway", **names.PART_OF}
PAGE_PATHS = "Path(`/`) || PathRegexp(`^/page/(?:data/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)"


def gateway(namespace: str, terms: Terms, *, page: bool = False) -> list[dict[str, Any]]:
    """Objects in the order to apply them; the Secret they name is made elsewhere and never rendered. `page`: what
    people look at goes to the router too."""
    there = {"name": router.NAME, "port": terms.port, "scheme": "http", "serversTransport": NAME,
             "passHostHeader": True}  # fmt: skip
    asked = f"({granted(terms)} || {PAGE_PATHS})" if page else granted(terms)
    routes = [
        _rule(f"{granted(terms)} && Method(`POST`)", 20, WHOLE, there),
        _rule(f"{asked} && Method(`GET`)", 30, BODILESS, there),
    ]
    spec = {"entryPoints": [ENCRYPTED], "routes": routes, "tls": {"secretName": TLS_SECRET}}
    return [
        _transport(namespace, terms.timeout),
        _store(namespace),
        *_middlewares(namespace),
        _object("IngressRoute", NAME, namespace, spec),
        _plain_route(namespace, asked),
    ]


def _object(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": dict(LABELS)}
    return names.manifest(API, kind, metadata, spec=spec)


def _transport(namespace: str, timeout: int) -> dict[str, Any]:
    """Towards the router: found within seconds, then as long as it takes. No connection is used twice."""
    times = {"dialTimeout": "10s", "responseHeaderTimeout": f"{timeout}s"}
    return _object("ServersTransport", NAME, namespace, {"forwardingTimeouts": times, "maxIdleConnsPerHost": -1})


def _store(namespace: str) -> dict[str, Any]:
    """Who asks by address sends no name: without a default he would get Traefik's own certificate."""
    return _object("TLSStore", "default", namespace, {"defaultCertificate": {"secretName": TLS_SECRET}})


def _middlewares(namespace: str) -> list[dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {
        BODILESS: {"buffering": {"maxRequestBodyBytes": 1}},  # 0 would be no limit
        WHOLE: {"retry": _reads_whole()},
        TO_TLS: {"redirectScheme": {"scheme": "https", "permanent": True}},
    }
    return [_object("Middleware", name, namespace, spec) for name, spec in made.items()]


def _reads_whole() -> dict[str, Any]:
    """Traefik's retry keeps a body that it might send again; this one never does: no answer has this status."""
    once = {"disableRetryOnNetworkError": True, "retryNonIdempotentMethod": True}
    return {"attempts": 2, "status": ["599"], "maxRequestBodyBytes": READ_WHOLE, **once}


def granted(terms: Terms) -> str:
    """Traefik's rule for the paths; it compares what is written, an encoded stroke is none."""
    exact = [f"Path(`{path}`)" for path in terms.paths if not path.endswith("/*")]
    below = [f"PathRegexp(`^{path.removesuffix('*')}{ONE}$`)" for path in terms.paths if path.endswith("/*")]
    return f"({' || '.join((*exact, *below))})"


def _rule(match: str, priority: int, middleware: str, service: dict[str, Any]) -> dict[str, Any]:
    named = [{"name": middleware}]
    return {"kind": "Rule", "match": match, "priority": priority, "services": [service], "middlewares": named}


def _plain_route(namespace: str, paths: str) -> dict[str, Any]:
    """Without TLS: sent to where there is."""
    nowhere = {"kind": "TraefikService", "name": "noop@internal"}
    rule = _rule(paths, 10, TO_TLS, nowhere)
    return _object("IngressRoute", "gateway-plain", namespace, {"entryPoints": [PLAIN], "routes": [rule]})
