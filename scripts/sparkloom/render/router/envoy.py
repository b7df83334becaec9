"""Envoy's files. All but the bootstrap are read anew when they change, and nothing that streams is cut by that.

Keys and models stand in the routes, not in the listener: a listener that changes drains its connections, routes that
change do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from sparkloom.inputs.client_keys import Key
from sparkloom.onnode.waker.refusal import AWAKE, GROUP, STREAM
from sparkloom.render.router import Group, Terms, people

TYPES = "type.googleapis.com/envoy"
FILTERS = f"{TYPES}.extensions.filters.http"
LUA, DOOR, WHOLE = "envoy.filters.http.lua", "envoy.filters.http.lua.door", "envoy.filters.http.buffer"
SCRIPTS = ("door.lua", "router.lua")
WAKER, EITHER = "+waker", "+on-demand"  # clusters of a group on demand; no group's name has a +
AT_WAKER = 64  # requests of one group that may wait for its waking
PIECE = 1 << 20  # bytes that a connection holds which nobody asked for
ADMIN, COUNTS, PAGE = "router-itself", "router-counts", "page-itself"
CERTIFICATE = "endpoint"
STATISTICS = "router"  # of clients' requests: http.router.downstream_rq_active are on their way
A_NAME = "[A-Za-z0-9][A-Za-z0-9._:@-]*"  # it cannot be ".."; an owner may stand before it
ONE = f"{A_NAME}(?:(?:/|%2[Ff]){A_NAME})?"


def files(groups: Sequence[Group], keys: Iterable[Key], terms: Terms) -> dict[str, str]:
    """Every file of the router's folder but the engines' own keys."""
    return {
        "envoy.yaml": as_text(bootstrap(terms)),
        "listeners.yaml": _resources([listener(terms), *_plain_listeners(terms)]),
        "routes.yaml": _resources([routes(groups, keys, terms)]),
        "clusters.yaml": _resources([*(one for group in groups for one in clusters(group, terms)), *_ours(terms)]),
        **{_secret_file(group): _resources([_secret(group)]) for group in groups},
        **({"certificate.yaml": _resources([_certificate(terms)])} if terms.tls else {}),
        **{name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in SCRIPTS},
    }


def argv(terms: Terms) -> list[str]:
    """One worker: router.lua keeps what was used in tables of its own."""
    words = ["--concurrency", "1", "--log-level", "warn", "--disable-hot-restart"]
    return ["envoy", "-c", f"{terms.folder}/envoy.yaml", *words]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_text(data: Any) -> str:
    """As all files here are written."""
    return yaml.dump(data, Dumper=_Plain, sort_keys=False, width=120)


def _resources(listed: list[dict[str, Any]]) -> str:
    return as_text({"resources": listed})


def _typed(of: str, **content: Any) -> dict[str, Any]:
    return {"@type": f"{TYPES}.{of}", **content}


def _from(terms: Terms, file: str) -> dict[str, Any]:
    """A mounted ConfigMap or Secret is swapped as a folder, so the folder is watched."""
    path = {"path": terms.file(file), "watched_directory": {"path": terms.folder}}
    return {"resource_api_version": "V3", "path_config_source": path}


def bootstrap(terms: Terms) -> dict[str, Any]:
    return {
        "node": {"id": "sparkloom-router", "cluster": "sparkloom"},
        "admin": {"address": _address("127.0.0.1", terms.admin_port)},
        "dynamic_resources": {
            "lds_config": _from(terms, "listeners.yaml"),
            "cds_config": _from(terms, "clusters.yaml"),
        },
        "overload_manager": _overload(terms),
    }


def _overload(terms: Terms) -> dict[str, Any]:
    """For all that router.lua does not measure itself: above it no new request is taken, and what is here goes on."""
    monitors = {
        "fixed_heap": ("fixed_heap.v3.FixedHeapConfig", {"max_heap_size_bytes": terms.memory * 7 // 8 << 20}),
        "global_downstream_max_connections": (
            "downstream_connections.v3.DownstreamConnectionsConfig",
            {"max_active_downstream_connections": terms.connections},
        ),
    }
    heap = "envoy.resource_monitors.fixed_heap"
    return {
        "refresh_interval": "0.1s",
        "resource_monitors": [
            {
                "name": f"envoy.resource_monitors.{name}",
                "typed_config": _typed(f"extensions.resource_monitors.{of}", **limits),
            }
            for name, (of, limits) in monitors.items()
        ],
        "actions": [_action("shrink_heap", heap, 0.8), _action("stop_accepting_requests", heap, 0.9)],
    }


def _action(name: str, by: str, above: float) -> dict[str, Any]:
    return {"name": f"envoy.overload_actions.{name}", "triggers": [{"name": by, "threshold": {"value": above}}]}


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def listener(terms: Terms) -> dict[str, Any]:
    """Of clients, through TLS where no one before it ends that. Another filter chain would have tables of its own, so
    what is counted is told by this one too, at a port on loopback."""
    manager = _manager(
        STATISTICS,
        rds={"route_config_name": "models", "config_source": _from(terms, "routes.yaml")},
        early_header_mutation_extensions=[_dropped_first()],
        use_remote_address=True,
        normalize_path=True,
        merge_slashes=True,
        stream_idle_timeout=f"{terms.timeout}s",
        request_timeout="300s",
        request_headers_timeout="10s",
        common_http_protocol_options={"headers_with_underscores_action": "REJECT_REQUEST", "idle_timeout": "180s"},
        http_protocol_options={"accept_http_10": True},  # of a proxy that somebody puts before it
        http2_protocol_options={
            "max_concurrent_streams": 100,
            "initial_stream_window_size": 64 << 10,  # bytes of a body that nobody has asked for
            "initial_connection_window_size": PIECE,
        },
        access_log=[_access_log()],
        local_reply_config={"mappers": _answers(terms)},
        http_filters=[
            _filter("lua.door", "lua.v3.Lua", default_source_code={"filename": terms.file("door.lua")}),
            _filter("buffer", "buffer.v3.Buffer", max_request_bytes=terms.megabytes << 20),
            _filter("lua", "lua.v3.Lua", default_source_code={"filename": terms.file("router.lua")}),
            _filter("router", "router.v3.Router", suppress_envoy_headers=True),
        ],
    )
    return {
        **_typed("config.listener.v3.Listener", name="clients"),
        "address": _address(terms.address, terms.tls_port if terms.tls else terms.port),
        "additional_addresses": [{"address": _address("127.0.0.1", terms.counts_port)}],
        "per_connection_buffer_limit_bytes": PIECE,
        "filter_chains": [{**_chain(manager), **_through_tls(terms)}],
    }


def _manager(statistics: str, **content: Any) -> dict[str, Any]:
    of = "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    return _typed(of, stat_prefix=statistics, **content)


def _chain(manager: dict[str, Any]) -> dict[str, Any]:
    return {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}


def _through_tls(terms: Terms) -> dict[str, Any]:
    """A renewed certificate is taken when its folder is swapped: connections that stand keep the one that they have."""
    if not terms.tls:
        return {}
    certificate = {"name": CERTIFICATE, "sds_config": _from(terms, "certificate.yaml")}
    common = {
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificate_sds_secret_configs": [certificate],
    }
    return {**_socket("DownstreamTlsContext", common_tls_context=common), "transport_socket_connect_timeout": "10s"}


def _socket(of: str, **content: Any) -> dict[str, Any]:
    typed = _typed(f"extensions.transport_sockets.tls.v3.{of}", **content)
    return {"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": typed}}


def _certificate(terms: Terms) -> dict[str, Any]:
    files = {"certificate_chain": "tls.crt", "private_key": "tls.key"}
    named = {name: {"filename": f"{terms.tls}/{file}"} for name, file in files.items()}
    of = _typed("extensions.transport_sockets.tls.v3.Secret", name=CERTIFICATE)
    return {**of, "tls_certificate": {**named, "watched_directory": {"path": terms.tls}}}


def _plain_listeners(terms: Terms) -> Iterator[dict[str, Any]]:
    """Is it ready: asked by the kubelet, which would end a pod that tells it what a flood is told. What was used, and
    Envoy's own series. And where TLS is, said to who comes without."""
    yield _plain_listener(terms, "probed", terms.probe_port, _inside("/ready", ADMIN), bypass_overload_manager=True)
    series = [*_inside("/metrics", COUNTS), *_inside("/stats/prometheus", ADMIN)]
    yield _plain_listener(terms, "watched", terms.metrics_port, series)
    if terms.tls:
        away = {"redirect": {"https_redirect": True, "response_code": "PERMANENT_REDIRECT"}}
        paths = [*map(_granted, terms.paths), *_page_paths(terms)]
        yield _plain_listener(terms, "plain", terms.port, [{"match": path, **away} for path in paths])


def _inside(path: str, cluster: str) -> list[dict[str, Any]]:
    return [{"match": {"path": path}, "route": {"cluster": cluster}}]


def _plain_listener(terms: Terms, name: str, port: int, listed: list[dict[str, Any]], **more: bool) -> dict[str, Any]:
    host = {"name": "all", "domains": ["*"], "routes": listed}
    route_config = {"name": name, "virtual_hosts": [host]}
    manager = _manager(name, route_config=route_config, http_filters=[_filter("router", "router.v3.Router")])
    address = _address(terms.address, port)
    of = _typed("config.listener.v3.Listener", name=name)
    return {**of, "address": address, **more, "filter_chains": [_chain(manager)]}


def _filter(name: str, of: str, **content: Any) -> dict[str, Any]:
    typed = _typed(f"extensions.filters.http.{of}", **content)
    return {"name": f"envoy.filters.http.{name}", "typed_config": typed}


def _dropped_first() -> dict[str, Any]:
    """Before a route is chosen: nobody chooses one by himself."""
    of = "extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
    typed = _typed(of, mutations=[{"remove": GROUP}, {"remove": STREAM}])
    return {"name": "envoy.http.early_header_mutation.header_mutation", "typed_config": typed}


def _access_log() -> dict[str, Any]:
    """One line of JSON a request, for programs and for people; no key, no text is in it."""
    told = {
        name: f"%DYNAMIC_METADATA(sparkloom:{name})%"
        for name in ("person", "model", "prompt_tokens", "completion_tokens")
    }
    line = {
        "at": "%START_TIME%", **told, "path": "%PATH(NQ)%", "status": "%RESPONSE_CODE%",
        "ms": "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:ms)%", "flags": "%RESPONSE_FLAGS%",
    }  # fmt: skip
    typed = _typed("extensions.access_loggers.stream.v3.StdoutAccessLog", log_format={"json_format": line})
    return {"name": "envoy.access_loggers.stdout", "typed_config": typed}


def _answers(terms: Terms) -> list[dict[str, Any]]:
    """What Envoy itself has to say, in the words of an OpenAI endpoint."""
    model, later = "%DYNAMIC_METADATA(sparkloom:model)%", terms.retry_after
    return [
        _answer(["UH", "NC"], 503, "model_not_up", f"{model} is not up now; its engine starts or has failed", later),
        _answer(["UO"], 503, "queue_full", f"as many requests as may wait for {model} are waiting", 5),
        _answer(["UF", "UC", "URX", "LR"], 503, "engine_lost", f"the engine of {model} went away before its first word",
                terms.retry_after),
        _answer(["OM"], 503, "router_full", "too much is on its way through here", 5),
        _answer(["UT", "SI"], 504, "timeout", f"{model} said nothing for {terms.timeout} s", None),
    ]  # fmt: skip


def _answer(flags: list[str], status: int, code: str, message: str, wait: int | None) -> dict[str, Any]:
    kind = "server_error"
    mapper: dict[str, Any] = {
        "filter": {"response_flag_filter": {"flags": flags}},
        "status_code": status,
        "body_format_override": {"json_format": {"error": {"message": message, "type": kind, "code": code}}},
    }
    if wait is not None:
        header = {"header": {"key": "retry-after", "value": str(wait)}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        mapper["headers_to_add"] = [header]
    return mapper


def routes(groups: Sequence[Group], keys: Iterable[Key], terms: Terms) -> dict[str, Any]:
    """What router.lua reads stands in their host, which a request has from its first route on."""
    told = {
        **people.table(groups, keys),
        "counts_port": str(terms.counts_port),
        "longest": terms.megabytes << 20,
        "room": (terms.memory << 20) // 6,
    }
    nowhere = {"error": {"message": "no such path here", "type": "invalid_request_error", "code": "not_found"}}
    closed = {"direct_response": {"status": 404, "body": {"inline_string": _json(nowhere)}}}
    listed = [
        *(_route(group, terms) for group in groups),
        *({"match": _with("GET", path), "route": {"cluster": PAGE}} for path in _page_paths(terms)),
        *({"match": _with("GET|POST", _granted(path)), **closed} for path in terms.paths),
        {"match": {"path": "/metrics"}, **closed},
        {"match": {"prefix": "/"}, **closed, "typed_per_filter_config": _passed_by()},
    ]
    told_both = {LUA: told, DOOR: told}
    host = {"name": "all", "domains": ["*"], "metadata": {"filter_metadata": told_both}, "routes": listed}
    return {**_typed("config.route.v3.RouteConfiguration", name="models"), "virtual_hosts": [host]}


def _page_paths(terms: Terms) -> list[dict[str, Any]]:
    """Its files are for everybody, its data for who has a key, which router.lua asks for."""
    regexes = ("/page/[A-Za-z0-9][A-Za-z0-9._-]*", r"/page/data/[A-Za-z0-9][A-Za-z0-9_-]*\.json")
    return [{"path": "/"}, *({"safe_regex": {"regex": regex}} for regex in regexes)] if terms.page else []


def _with(methods: str, path: dict[str, Any]) -> dict[str, Any]:
    return {**path, "headers": [{"name": ":method", "string_match": {"safe_regex": {"regex": methods}}}]}


def _json(data: Any) -> str:
    return json.dumps(data) + "\n"


def _passed_by() -> dict[str, Any]:
    """A path that is closed is so for everybody. A short body is read before that is said: some clients that are
    answered while they send lose the answer (curl before 8, in HTTP/2)."""
    script = _typed("extensions.filters.http.lua.v3.LuaPerRoute", disabled=True)
    short = _typed("extensions.filters.http.buffer.v3.BufferPerRoute", buffer={"max_request_bytes": 64 << 10})
    return {LUA: script, DOOR: script, WHOLE: short}


def _granted(path: str) -> dict[str, Any]:
    """`/*` at the end is a model's name."""
    if path.endswith("/*"):
        return {"safe_regex": {"regex": f"{re.escape(path[:-1])}{ONE}"}}
    return {"path": path}


def _route(group: Group, terms: Terms) -> dict[str, Any]:
    """Again only where no byte of an answer has come, as when an engine went away with the request on its way; and when
    a waker says that the group is awake now."""
    chosen = {"name": GROUP, "string_match": {"exact": group.name}}
    again: dict[str, Any] = {"retry_on": "connect-failure,reset", "num_retries": 2}
    if group.waker:
        again = {
            "retry_on": "connect-failure,reset,retriable-headers",
            "retriable_headers": [{"name": AWAKE, "present_match": True}],
            "num_retries": 4,  # three times the engine, as any other, and between them its waker
            "retry_priority": _elsewhere(),
        }
    dropped = {} if group.waker else {"request_headers_to_remove": [GROUP]}  # a waker has several groups
    return {
        "name": group.name,
        "match": {"prefix": "/v1/", "headers": [chosen]},
        "route": {
            "cluster": led_to(group),
            "timeout": "0s",
            "idle_timeout": f"{terms.timeout}s",
            "retry_policy": again,
        },
        **dropped,
    }


def _elsewhere() -> dict[str, Any]:
    """An engine that was told to go is healthy here for some seconds more: its waker is asked, not it again."""
    of = "extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig"
    return {"name": "envoy.retry_priorities.previous_priorities", "typed_config": _typed(of, update_frequency=1)}


def clusters(group: Group, terms: Terms) -> list[dict[str, Any]]:
    """Its engine's; of one on demand its waker's, too, and the one that leads to whichever of them is there."""
    engine: dict[str, Any] = {"address": _address(group.address, group.port)}
    if group.health_port:
        engine["health_check_config"] = {"port_value": group.health_port}
    made = _asked(group, terms, "", engine, group.health_path, _engine_bounds(group))
    if not group.waker:
        return [made]
    host, _, port = group.waker.rpartition(":")
    waker = {"address": _address(host, int(port))}
    return [made, _asked(group, terms, WAKER, waker, "/ready", _waker_bounds(group)), _either(group, terms)]


def led_to(group: Group) -> str:
    """The cluster of its route. Figures of a group are its engine's; the other two count under names of their own."""
    return group.name + (EITHER if group.waker else "")


def _named(group: Group, what: str) -> dict[str, Any]:
    counted = {"alt_stat_name": group.counted + what} if group.counted != group.name else {}
    return {**_typed("config.cluster.v3.Cluster", name=group.name + what), **counted}


def _engine_bounds(group: Group) -> dict[str, int]:
    """`at_once` connections, which are as many requests, and `waiting` that have none yet. Any of them may be asked
    again: whom Envoy's own bound of three turns away would hear that the queue is full."""
    most = group.at_once + group.waiting
    return {
        "max_connections": group.at_once, "max_pending_requests": group.waiting, "max_requests": most,
        "max_retries": most,
    }  # fmt: skip


def _waker_bounds(group: Group) -> dict[str, int]:
    """Who waits for a waking, and those who did and are answered through it. Nobody waits here for a connection to the
    waker, as he would hear no word meanwhile: there are more of them than requests."""
    most = group.at_once + AT_WAKER
    return {"max_connections": 2 * most, "max_pending_requests": most, "max_requests": most}


def _asked(
    group: Group, terms: Terms, what: str, endpoint: dict[str, Any], ready: str, bounds: dict[str, int]
) -> dict[str, Any]:
    """Who is away is asked more often: somebody waits for him. A waker that goes answers to its end on connections that
    it has, so it is asked on new ones, which lead to the next."""
    health: dict[str, Any] = {
        "timeout": "5s", "interval": "5s", "no_traffic_interval": "5s", "unhealthy_interval": "2s",
        "unhealthy_threshold": 2, "healthy_threshold": 1, "initial_jitter": "0s", "http_health_check": {"path": ready},
    }  # fmt: skip
    if what == WAKER:
        health["reuse_connection"] = False
    endpoints = [{"lb_endpoints": [{"endpoint": endpoint}]}]
    return {
        **_named(group, what),
        "type": _found(endpoint["address"]["socket_address"]["address"]),
        "connect_timeout": "2s",
        "load_assignment": {"cluster_name": group.name + what, "endpoints": endpoints},
        "health_checks": [health],
        "circuit_breakers": {"thresholds": [bounds]},
        **_nobody_at_random(),
        **_protocol(group, terms),
    }


def _either(group: Group, terms: Terms) -> dict[str, Any]:
    """The engine while it is healthy, else the waker. What is injected and how many may be asked again is its own
    matter, not that of the two: a storm in the moment of falling asleep is asked again all at once."""
    of = "extensions.clusters.aggregate.v3.ClusterConfig"
    typed = _typed(of, clusters=[group.name, group.name + WAKER])
    return {
        **_named(group, EITHER),
        "connect_timeout": "2s",
        "lb_policy": "CLUSTER_PROVIDED",
        "cluster_type": {"name": "envoy.clusters.aggregate", "typed_config": typed},
        "circuit_breakers": {"thresholds": [{"max_retries": group.at_once + group.waiting}]},
        **_nobody_at_random(),
        **_protocol(group, terms),
    }


def _nobody_at_random() -> dict[str, Any]:
    return {"common_lb_config": {"healthy_panic_threshold": {"value": 0}}}


def _protocol(group: Group, terms: Terms) -> dict[str, Any]:
    name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {"typed_extension_protocol_options": {name: _http1(group, terms)}}


def _found(address: str) -> str:
    """How: by its name, asked again and again, or by a number."""
    number = re.fullmatch(r"[0-9.]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*", address)
    return "STATIC" if number else "STRICT_DNS"


def _http1(group: Group, terms: Terms) -> dict[str, Any]:
    """No connection is used twice: an engine closes one while the next request is on its way to it, and to a rank that
    drains one that idles looks like a request, which would hold every stop up."""
    sds = {"name": group.name, "sds_config": _from(terms, _secret_file(group))}
    form = {"header": "Authorization", "header_value_prefix": "Bearer "}
    own = _typed("extensions.http.injected_credentials.generic.v3.Generic", credential=sds, **form)
    injector = _typed(
        "extensions.filters.http.credential_injector.v3.CredentialInjector",
        overwrite=True,
        credential={"name": "envoy.http.injected_credentials.generic", "typed_config": own},
    )
    codec = _typed("extensions.filters.http.upstream_codec.v3.UpstreamCodec")
    return _typed(
        "extensions.upstreams.http.v3.HttpProtocolOptions",
        explicit_http_config={"http_protocol_options": {}},
        common_http_protocol_options={"max_requests_per_connection": 1},
        http_filters=[
            {"name": "envoy.filters.http.credential_injector", "typed_config": injector},
            {"name": "envoy.filters.http.upstream_codec", "typed_config": codec},
        ],
    )


def _secret_file(group: Group) -> str:
    """A file each: Envoy wants one secret where it asks for one."""
    return f"secret-{group.file}.yaml"


def _secret(group: Group) -> dict[str, Any]:
    """Where the engine's own key is read from; the key itself is in no file of ours."""
    of = _typed("extensions.transport_sockets.tls.v3.Secret", name=group.name)
    return {**of, "generic_secret": {"secret": {"filename": group.key_file}}}


def _ours(terms: Terms) -> list[dict[str, Any]]:
    """Envoy's own ports on loopback, and the page where there is one."""
    counts = _plain_cluster(COUNTS, "127.0.0.1", terms.counts_port)
    made = [_plain_cluster(ADMIN, "127.0.0.1", terms.admin_port), counts]
    if terms.tls:
        counts |= _socket("UpstreamTlsContext")  # to itself: there is nobody to be mistaken for it
    if terms.page:
        host, _, port = terms.page.rpartition(":")
        made.append(_plain_cluster(PAGE, host, int(port)))
    return made


def _plain_cluster(name: str, host: str, port: int) -> dict[str, Any]:
    return {
        **_typed("config.cluster.v3.Cluster", name=name),
        "type": _found(host),
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(host, port)}}]}],
        },
    }
