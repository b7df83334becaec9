"""Envoy's files. All but the bootstrap are read anew when they change, and nothing that streams is cut by that.

They are written beside this as Envoy has them (`bootstrap.yml`, `listeners.yml`, ...); a site's values are put in here.
Models stand in the routes, not in the listener: a listener that changes drains its connections, routes that change do
not. Keys stand in a file that admission.lua reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from sparkloom.base import document
from sparkloom.inputs.client_keys import Key
from sparkloom.onnode import key_table
from sparkloom.onnode.waker.refusal import AWAKE, GROUP, STREAM
from sparkloom.render import template
from sparkloom.render.router import Group, Terms, models

TYPES = "type.googleapis.com/envoy"
LUA, ADMISSION, WHOLE = "envoy.filters.http.lua", "envoy.filters.http.lua.admission", "envoy.filters.http.buffer"
SCRIPTS = {
    "admission.lua": ("common.lua", "sha256.lua", "body.lua", "admission.lua"),
    "router.lua": ("common.lua", "router.lua"),
}
AT_WAKER = 64  # requests of one group that may wait for its waking
PIECE = 1 << 16  # bytes that a connection holds which nobody asked for
UPSTREAM = "x-sparkloom-from"  # by which a rank knows the connection
STATISTICS = "router"  # of clients' requests: http.router.downstream_rq_active are on their way
A_NAME = "[A-Za-z0-9][A-Za-z0-9._:@-]*"  # it cannot be ".."; an owner may stand before it
ONE = f"{A_NAME}(?:(?:/|%2[Ff]){A_NAME})?"


def files(groups: Sequence[Group], keys: Iterable[Key], terms: Terms) -> dict[str, str]:
    """Every file of the router's folder but the engines' own keys."""
    return {
        "envoy.yaml": as_text(bootstrap(terms)),
        "listeners.yaml": _resources(listeners(terms)),
        "routes.yaml": _resources([routes(groups, terms)]),
        key_table.FILE: key_table.text(key.entry for key in keys),
        "clusters.yaml": _resources([*(one for group in groups for one in clusters(group, terms)), *_own(terms)]),
        **{_secret_file(group): _resources([_secret(group)]) for group in groups},
        **({"certificate.yaml": _resources([_certificate(terms)])} if terms.tls else {}),
        **{name: "".join(map(_script, parts)) for name, parts in SCRIPTS.items()},
    }


def _script(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def argv(terms: Terms) -> list[str]:
    """One worker: admission.lua keeps what was used in tables of its own."""
    words = ["--concurrency", "1", "--log-level", "warn", "--disable-hot-restart"]
    return ["envoy", "-c", f"{terms.folder}/envoy.yaml", *words]


def as_text(data: Any) -> str:
    """As all files here are written."""
    return yaml.dump(data, Dumper=document.PlainDumper, sort_keys=False, width=120)


def _resources(listed: list[dict[str, Any]]) -> str:
    return as_text({"resources": listed})


def _typed(of: str, **content: Any) -> dict[str, Any]:
    return {"@type": f"{TYPES}.{of}", **content}


def _from(terms: Terms, file: str) -> dict[str, Any]:
    """A mounted ConfigMap or Secret is swapped as a folder, so the folder is watched."""
    path = {"path": terms.file(file), "watched_directory": {"path": terms.folder}}
    return {"resource_api_version": "V3", "path_config_source": path}


def bootstrap(terms: Terms) -> dict[str, Any]:
    return template.one(
        "router/bootstrap",
        admin=terms.admin_port,
        listeners=_from(terms, "listeners.yaml"),
        clusters=_from(terms, "clusters.yaml"),
        heap=terms.memory * 7 // 8 << 20,
        connections=terms.connections,
    )


def listeners(terms: Terms) -> list[dict[str, Any]]:
    """Of clients, of the kubelet, of who reads metrics; and where TLS is, of who comes without."""
    away = {"redirect": {"https_redirect": True, "response_code": "PERMANENT_REDIRECT"}}
    made = template.one(
        "router/listeners",
        address=terms.address,
        port=terms.tls_port if terms.tls else terms.port,
        counts=terms.counts_port,
        probe_port=terms.probe_port,
        metrics_port=terms.metrics_port,
        plain_port=terms.port,
        redirects=[{"match": path, **away} for path in [*map(_granted, terms.paths), *_page_paths(terms)]],
        files=terms.file(""),
        routes=_from(terms, "routes.yaml"),
        certificate=_from(terms, "certificate.yaml"),
        answers=template.one("router/answers", retry_after=str(terms.retry_after), timeout=terms.timeout),
        statistics=STATISTICS,
        log=terms.log,
        chosen_group=GROUP,
        stream=STREAM,
        timeout=terms.timeout,
        longest=terms.megabytes << 20,
        piece=PIECE,
    )
    clients, plain = made["clients"], [made["plain"]] if terms.tls else []
    if terms.tls:
        clients["filter_chains"][0] |= made["tls"]
    return [clients, made["probed"], made["watched"], *plain]


def _certificate(terms: Terms) -> dict[str, Any]:
    files = {"certificate_chain": "tls.crt", "private_key": "tls.key"}
    named = {name: {"filename": f"{terms.tls}/{file}"} for name, file in files.items()}
    of = _typed("extensions.transport_sockets.tls.v3.Secret", name="endpoint")
    return {**of, "tls_certificate": {**named, "watched_directory": {"path": terms.tls}}}


def routes(groups: Sequence[Group], terms: Terms) -> dict[str, Any]:
    tables = {
        **models.table(groups),
        "keys_file": terms.file(key_table.FILE),
        "counts_port": str(terms.counts_port),
        "log": terms.log,
        "longest": terms.megabytes << 20,
        "room": (terms.memory << 20) // 4,
    }
    nowhere = {"error": {"message": "no such path here", "type": "invalid_request_error", "code": "not_found"}}
    closed = {"direct_response": {"status": 404, "body": {"inline_string": json.dumps(nowhere) + "\n"}}}
    listed = [
        *(_route(group, terms) for group in groups),
        *({"match": _with("GET", path), "route": {"cluster": "page-itself"}} for path in _page_paths(terms)),
        *({"match": _with("POST", path), "route": {"cluster": "page-itself"}} for path in _page_acts(terms)),
        *({"match": _with("GET|POST", _granted(path)), **closed} for path in terms.paths),
        {"match": {"path": "/metrics"}, **closed},
        {"match": {"prefix": "/"}, **closed, "typed_per_filter_config": _passed_by()},
    ]
    return template.one("router/routes", tables=tables, routes=listed)


def _page_paths(terms: Terms) -> list[dict[str, Any]]:
    """Its files are for everybody, its data for who has a key, which admission.lua asks for."""
    regexes = ("/page/[A-Za-z0-9][A-Za-z0-9._-]*", r"/page/data/[A-Za-z0-9][A-Za-z0-9_-]*\.json")
    return [{"path": "/"}, *({"safe_regex": {"regex": regex}} for regex in regexes)] if terms.page else []


def _page_acts(terms: Terms) -> list[dict[str, Any]]:
    """What it does for a key that may administer, which the page's server asks for."""
    return [{"safe_regex": {"regex": "/page/act/[a-z][a-z-]*"}}] if terms.page else []


def _with(methods: str, path: dict[str, Any]) -> dict[str, Any]:
    return {**path, "headers": [{"name": ":method", "string_match": {"safe_regex": {"regex": methods}}}]}


def _passed_by() -> dict[str, Any]:
    """A path that is closed is so for everybody. A short body is read before that is said: some clients that are
    answered while they send lose the answer."""
    script = _typed("extensions.filters.http.lua.v3.LuaPerRoute", disabled=True)
    short = _typed("extensions.filters.http.buffer.v3.BufferPerRoute", buffer={"max_request_bytes": 64 << 10})
    return {LUA: script, ADMISSION: script, WHOLE: short}


def _granted(path: str) -> dict[str, Any]:
    """`/*` at the end is a model's name."""
    if path.endswith("/*"):
        return {"safe_regex": {"regex": f"{re.escape(path[:-1])}{ONE}"}}
    return {"path": path}


def _route(group: Group, terms: Terms) -> dict[str, Any]:
    named = {"name": group.name, "chosen_group": GROUP, "upstream": UPSTREAM}
    made = template.one("router/group_route", **named, timeout=terms.timeout, awake=AWAKE)
    return dict(made["on_demand" if group.waker else "always_up"])


def clusters(group: Group, terms: Terms) -> list[dict[str, Any]]:
    """Its engine's; of one on demand its waker's, too, and the one that leads to whichever of them is there."""
    engine: dict[str, Any] = {"address": _address(group.address, group.port)}
    if group.health_port:
        engine["health_check_config"] = {"port_value": group.health_port}
    host, port = _place(group.waker)
    most = group.at_once + AT_WAKER
    made = template.one(
        "router/group_clusters",
        name=group.name,
        counted=group.counted,
        engine=engine,
        engine_type=_found(group.address),
        health_path=group.health_path,
        at_once=group.at_once,
        waiting=group.waiting,
        engine_most=group.at_once + group.waiting,
        supervisor=_address(group.address, group.health_port),
        waker={"address": _address(host, port)},
        waker_type=_found(host),
        waker_connections=2 * most,
        waker_most=most,
        secret=_from(terms, _secret_file(group)),
    )
    supervised = [made["supervisor"]] if group.health_port else []
    on_demand = [made["waker"], made["either"]] if group.waker else []
    return [made["engine"], *supervised, *on_demand]


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def _place(text: str) -> tuple[str, int]:
    """Of HOST:PORT; of nobody, no port."""
    host, _, port = text.rpartition(":")
    return host, int(port or 0)


def _found(address: str) -> str:
    """How: by its name, asked again and again, or by a number."""
    return "STATIC" if re.fullmatch(r"[0-9.]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*", address) else "STRICT_DNS"


def _secret_file(group: Group) -> str:
    """A file each: Envoy wants one secret where it asks for one."""
    return f"secret-{group.file}.yaml"


def _secret(group: Group) -> dict[str, Any]:
    """Where the engine's own key is read from; the key itself is in no file of ours."""
    of = _typed("extensions.transport_sockets.tls.v3.Secret", name=group.name)
    return {**of, "generic_secret": {"secret": {"filename": group.key_file}}}


def _own(terms: Terms) -> list[dict[str, Any]]:
    host, port = _place(terms.page)
    made = template.one(
        "router/own_clusters",
        admin=terms.admin_port,
        counts=terms.counts_port,
        page_type=_found(host),
        page_host=host,
        page_port=port,
    )
    counts = {**made["counts"], **(made["counts_tls"] if terms.tls else {})}
    return [made["itself"], counts, *([made["page"]] if terms.page else [])]
