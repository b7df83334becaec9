"""The endpoint that clients use: K3s' own Traefik ends TLS and passes a few exact paths on to rank 0, and nothing else.

Rank 0's supervisor is asked about each request's key first, in constant time. Its 200 names the client, for the limits,
and brings the engine's own key, which takes the place of the client's: an engine never sees that one, so it is renewed
without a restart. Then come the limits: of requests in a second, at once, and of a request's length. Nothing that one
of them refuses reaches the engine. All other paths (/health, /metrics, weight updates, aborts) have no route, and
neither has a spelling that an engine would decode to one of them.
Streams pass as they come: Traefik flushes `text/event-stream` at once, and a client that leaves ends the request at
the engine too. Only the first byte of an answer is waited for with a limit, which a long prompt behind a queue needs.
Its own buffer would hold a stream back until the end, so a POST's length is judged by what it says of itself. A GET has
no body and its answer is whole, so it passes the buffer, which refuses one that brings more than a byte.
A short POST is read whole before it is passed on: Go's proxy reads a body's end while the engine answers already, and
an engine that answered first, within a few ms, was cut off in its answer (golang/go#40747; 18 of 300 here).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.launch import ports
from sparkloom.launch.resolve import Launch
from sparkloom.onnode.rank import clients
from sparkloom.onnode.rank.order import KEY_PATH, TOO_LONG_PATH
from sparkloom.render.manifests import names

API = "traefik.io/v1alpha1"
NAME = "gateway"
TLS_SECRET = "gateway-tls"
PLAIN, ENCRYPTED = "web", "websecure"  # K3s' names of ports 80 and 443
RATE, AT_ONCE, TOO_LONG, TO_TLS = "gateway-rate", "gateway-at-once", "gateway-too-long", "gateway-to-tls"
BODILESS, WHOLE = "gateway-bodiless", "gateway-whole"
READ_WHOLE = 1 << 20  # bytes; no engine answers a longer one before its end was read
BEFORE_AN_ENGINE = (NAME, RATE, AT_ONCE, TOO_LONG)  # a router leaves them nothing to do
LABELS = {"app.kubernetes.io/name": "gateway", "app.kubernetes.io/component": "gateway", **names.PART_OF}
MEGABYTES = {1: 6, 10: 7, 100: 8, 1000: 9}  # a length below it has so many digits at most
GRANTED = re.compile(r"/v1(?:/[a-z0-9_-]+)+(?:/\*)?")
A_NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"  # it cannot be ".."; an owner may stand before it
ONE = f"{A_NAME}(?:(?:/|%2[Ff]){A_NAME})?"
PAGE_PATHS = "Path(`/`) || PathRegexp(`^/page/(?:data/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)"
KEYS = ("Authorization", "X-Api-Key")  # as OpenAI's clients bring theirs, and Anthropic's
WHO = {"requestHeaderName": clients.HEADER}  # by address, K3s' load balancer would make one client of all


@dataclass(frozen=True, slots=True)
class Terms:
    """What a site grants its clients."""

    timeout: int  # seconds to the first byte
    paths: tuple[str, ...]  # `*` at the end is a model's name
    megabytes: int
    rate: int
    at_once: int

    def __post_init__(self) -> None:
        for path in self.paths or ("",):
            if not GRANTED.fullmatch(path):
                message = f"'{path}' is no path below /v1 in small letters, with /* at its end at most (gateway_paths)"
                raise InputError.single("the inventory", message, rule="gateway-path")


def gateway(launch: Launch, namespace: str, terms: Terms) -> list[dict[str, Any]]:
    """Objects in the order to apply them; the Secrets they name are made elsewhere and never rendered."""
    return [
        _transport(namespace, terms.timeout),
        _store(namespace),
        *_middlewares(launch, namespace, terms),
        _route(launch, namespace, terms),
        _plain_route(namespace, granted(terms)),
    ]


def routed(namespace: str, service: str, port: int, terms: Terms, *, page: bool = False) -> list[dict[str, Any]]:
    """The same before a router, which knows keys, models, limits and lengths: TLS, exact paths and whole short bodies
    are what Traefik still does. `page`: what people look at goes there too."""
    there = {"name": service, "port": port, "scheme": "http", "serversTransport": NAME, "passHostHeader": True}
    asked = f"({granted(terms)} || {PAGE_PATHS})" if page else granted(terms)
    routes = [
        _rule(f"{granted(terms)} && Method(`POST`)", 20, (WHOLE,), there),
        _rule(f"{asked} && Method(`GET`)", 30, (BODILESS,), there),
    ]
    spec = {"entryPoints": [ENCRYPTED], "routes": routes, "tls": {"secretName": TLS_SECRET}}
    return [
        _transport(namespace, terms.timeout),
        _store(namespace),
        *(_object("Middleware", name, namespace, spec) for name, spec in _of_every_kind().items()),
        _object("IngressRoute", NAME, namespace, spec),
        _plain_route(namespace, asked),
    ]


def _object(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": dict(LABELS)}
    return names.manifest(API, kind, metadata, spec=spec)


def _transport(namespace: str, timeout: int) -> dict[str, Any]:
    """Towards the engine: found within seconds, then as long as it takes.

    No connection is used twice. An engine closes one that idles while a request is on its way to it (of 200 at once
    llama.cpp dropped 2 to 16 so), and to a rank that drains it would look like a request, for 40 s.
    """
    times = {"dialTimeout": "10s", "responseHeaderTimeout": f"{timeout}s"}
    return _object("ServersTransport", NAME, namespace, {"forwardingTimeouts": times, "maxIdleConnsPerHost": -1})


def _store(namespace: str) -> dict[str, Any]:
    """Who asks by address sends no name: without a default he would get Traefik's own certificate."""
    return _object("TLSStore", "default", namespace, {"defaultCertificate": {"secretName": TLS_SECRET}})


def _middlewares(launch: Launch, namespace: str, terms: Terms) -> list[dict[str, Any]]:
    """The first asks for the key: a supervisor that cannot be asked lets nobody in."""
    where = f"{names.group(launch.group)}.{namespace}.svc.cluster.local:{ports.PROBES}"
    every = _of_every_kind()
    made: dict[str, dict[str, Any]] = {
        NAME: {
            "forwardAuth": {
                "address": f"http://{where}{KEY_PATH}",
                "authRequestHeaders": list(KEYS),
                "authResponseHeaders": [*KEYS, clients.HEADER],  # one that the answer has not is taken off
            }
        },
        RATE: {"rateLimit": {"average": terms.rate, "burst": max(terms.rate, terms.at_once), "sourceCriterion": WHO}},
        AT_ONCE: {"inFlightReq": {"amount": terms.at_once, "sourceCriterion": WHO}},
        BODILESS: every[BODILESS],
        WHOLE: every[WHOLE],
        TOO_LONG: {"replacePath": {"path": TOO_LONG_PATH}},
        TO_TLS: every[TO_TLS],
    }
    return [_object("Middleware", name, namespace, spec) for name, spec in made.items()]


def _of_every_kind() -> Mapping[str, dict[str, Any]]:
    return {
        BODILESS: {"buffering": {"maxRequestBodyBytes": 1}},  # 0 would be no limit
        WHOLE: {"retry": _reads_whole()},
        TO_TLS: {"redirectScheme": {"scheme": "https", "permanent": True}},
    }


def _reads_whole() -> dict[str, Any]:
    """Traefik's retry keeps a body that it might send again; this one never does: no answer has this status."""
    once = {"disableRetryOnNetworkError": True, "retryNonIdempotentMethod": True}
    return {"attempts": 2, "status": ["599"], "maxRequestBodyBytes": READ_WHOLE, **once}


def granted(terms: Terms) -> str:
    """Traefik's rule for the paths; it compares what is written, an encoded stroke is none."""
    exact = [f"Path(`{path}`)" for path in terms.paths if not path.endswith("/*")]
    below = [f"PathRegexp(`^{path.removesuffix('*')}{ONE}$`)" for path in terms.paths if path.endswith("/*")]
    return f"({' || '.join((*exact, *below))})"


def _rule(match: str, priority: int, middlewares: tuple[str, ...], service: dict[str, Any]) -> dict[str, Any]:
    named = [{"name": name} for name in middlewares]
    return {"kind": "Rule", "match": match, "priority": priority, "services": [service], "middlewares": named}


def _route(launch: Launch, namespace: str, terms: Terms) -> dict[str, Any]:
    """A request that says how long it is, or a question without a body; one that is too long is told so."""
    group = {"name": names.group(launch.group), "scheme": "http", "serversTransport": NAME}
    engine = {**group, "port": launch.port, "passHostHeader": True}
    supervisor = {**group, "port": ports.PROBES, "passHostHeader": False}
    paths, short = granted(terms), f"HeaderRegexp(`Content-Length`, `^[0-9]{{1,{MEGABYTES[terms.megabytes]}}}$`)"
    routes = [
        _rule(f"{paths} && Method(`POST`) && {short}", 20, (NAME, RATE, AT_ONCE, WHOLE), engine),
        _rule(f"{paths} && Method(`GET`)", 30, (NAME, RATE, AT_ONCE, BODILESS), engine),
        _rule(f"{paths} && Method(`POST`)", 10, (NAME, TOO_LONG), supervisor),
    ]
    spec = {"entryPoints": [ENCRYPTED], "routes": routes, "tls": {"secretName": TLS_SECRET}}
    return _object("IngressRoute", NAME, namespace, spec)


def _plain_route(namespace: str, paths: str) -> dict[str, Any]:
    """Without TLS: sent to where there is."""
    nowhere = {"kind": "TraefikService", "name": "noop@internal"}
    rule = _rule(paths, 10, (TO_TLS,), nowhere)
    return _object("IngressRoute", "gateway-plain", namespace, {"entryPoints": [PLAIN], "routes": [rule]})
