"""The endpoint: how clients reach it, and whether it is what it should be: certificate, locks, a streamed answer."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.base.repository import place
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import folder_of, require_own
from sparkloom.onnode import smoke
from sparkloom.render import keys
from sparkloom.render.manifests import gateway
from sparkloom.site import client, patience

CHAT = "/v1/chat/completions"
NOBODY = "a-model-that-nobody-has"
ANSWERS = 10.0  # seconds
HEARS = 20.0
OPENS = 60.0
CLOSED = (
    "/health", "/metrics", "/flush_cache", "/abort_request",
    "/v1x", "/v1/..%2fhealth", "/v1/models/..%2f..%2fhealth",
)  # fmt: skip


class Reach(NamedTuple):
    """Its address, the authority that vouches for it, the key's file: as playbooks/gateway.yml makes it by default."""

    url: str
    ca: Path | None
    key_file: Path | None


def reach(cluster: Cluster, inventory: str | Path | None = None) -> Reach:
    """Every Spark answers, and the first one is as good as any; without addresses of machines, the cluster's own."""
    require_own(cluster.example)
    told = _gateway_variables(inventory)
    folder = place(told.get("gateway_folder") or f"~/.config/sparkloom/{cluster.name}")
    key = place(told.get("gateway_key_file") or f"{folder}/api-key")
    ca = folder / "ca.pem"
    ingress = gateway.ingress_class(cluster, told.get("gateway_ingress", "auto"))
    named = told.get("gateway_names") if ingress else None  # an Ingress goes by names
    address = named[0] if named else cluster.nodes[0].management_address or _balanced(cluster)
    port = str(told.get("gateway_port") or 443)
    url = f"https://{address}{'' if port == '443' else f':{port}'}"
    return Reach(url, ca if ca.exists() else None, key if key.exists() else None)


def models(reach: Reach) -> tuple[list[dict[str, Any]], str]:
    """What the key of this machine opens, as the endpoint tells it, or why it does not."""
    parts = urlsplit(reach.url)
    there = Endpoint(parts.hostname or "", parts.port or 443, trust=str(reach.ca or ""), timeout=ANSWERS)
    try:
        status, body = _answer(there, "GET", "/v1/models", keys.read(reach.key_file) if reach.key_file else "")
        if status != 200:
            return [], f"it answered {status}: {body[:200].strip()}"
        return list(json.loads(body)["data"]), ""
    except (OSError, http.client.HTTPException, ValueError) as error:
        return [], getattr(error, "verify_message", "") or getattr(error, "strerror", "") or str(error)


def _gateway_variables(inventory: str | Path | None) -> dict[str, Any]:
    """The gateway's variables as an inventory's group_vars/all has them, where they are no templates."""
    if inventory is None:
        return {}
    files = (folder_of(inventory) / "group_vars" / "all").glob("*.yml")
    told = {name: value for file in sorted(files) for name, value in document.load(file).data.items()}
    return {name: value for name, value in told.items() if name.startswith("gateway_") and "{{" not in str(value)}


def _balanced(cluster: Cluster) -> str:
    """Where the cluster's load balancer leads in."""
    try:
        addresses = client.of(cluster).led_in(gateway.NAME)
        why = f"the cluster has no Service {cluster.namespace}/{gateway.NAME} with an address"
    except InputError as error:
        addresses, why = [], error.problems[0].message
    except Exception as error:
        addresses, why = [], patience.trouble(error)
        if not why:
            raise
    if addresses:
        return addresses[0]
    found = f"{cluster.nodes[0].name} has no management_address, and {why}, so the endpoint is not known"
    cure = "--url names it, and playbooks/gateway.yml opens one"
    raise InputError.single("hosts.yml", f"{found}; {cure}", rule="no-endpoint")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where it is, whom its certificate must name, and which authority to trust (empty: this machine's own)."""

    address: str
    port: int = 443
    name: str = ""
    trust: str = ""
    timeout: float = 180.0

    @property
    def url(self) -> str:
        return f"https://{self.name or self.address}{'' if self.port == 443 else f':{self.port}'}/v1"

    def connect(self) -> http.client.HTTPSConnection:
        context, asked = ssl.create_default_context(cafile=self.trust or None), self.name or self.address
        connection = http.client.HTTPSConnection(asked, self.port, timeout=self.timeout, context=context)
        raw = socket.create_connection((self.address, self.port), timeout=self.timeout)
        connection.sock = context.wrap_socket(raw, server_hostname=asked)
        return connection


def _answer(
    endpoint: Endpoint, method: str, path: str, key: str = "", body: Mapping[str, Any] | None = None
) -> tuple[int, str]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    with contextlib.closing(endpoint.connect()) as connection:
        connection.request(method, path, json.dumps(body or {}) if method == "POST" else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")


def opened(reached: client.Client, seconds: float = OPENS) -> str:
    """The first of its addresses, once the cluster's load balancer has given it some."""
    limit = time.monotonic() + seconds
    while not (addresses := reached.led_in(gateway.NAME)):
        if time.monotonic() > limit:
            message = (
                f"has no address after {seconds:.0f} s; expected K3s' ServiceLB and free ports on the nodes. If K3s' "
                "Traefik has them, playbooks/cluster.yml switches it off; gateway_ingress leads through another's"
            )
            raise InputError.single(f"Service {reached.namespace}/{gateway.NAME}", message, rule="no-way-in")
        time.sleep(1)
    return addresses[0]


def settled(endpoint: Endpoint, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> str:
    """A new address leads there within a second or two; what is said at last where it does not."""
    limit, last = time.monotonic() + seconds, "nothing"
    while time.monotonic() < limit:
        try:
            status, _ = _answer(endpoint, "POST", CHAT)
            if status not in (404, 502, 503):
                return ""
            last = f"{CHAT} answered {status}"
        except ssl.SSLError as error:
            last = f"the certificate does not fit: {getattr(error, 'verify_message', '') or error}"
        except OSError as error:
            last = f"{type(error).__name__}: {error}"
        sleep(0.5)
    return last


def locks(endpoint: Endpoint) -> list[str]:
    """What stands open and should not."""
    found = []
    for words, key in (("without a key", ""), ("with a wrong key", "sk-this-is-not-the-key")):
        status, _ = _answer(endpoint, "POST", CHAT, key)
        if status != 401:
            found.append(f"{CHAT} {words} answered {status}, expected 401")
    for path in CLOSED:
        status, _ = _answer(endpoint, "GET", path)
        if status != 404:
            found.append(f"{path} answered {status} through the gateway, expected 404")
    return found


def prove(endpoint: Endpoint, key: str, max_tokens: int, say: Callable[[str], None], model: str = "") -> dict[str, Any]:
    """A streamed answer with the key; `smoke.NoAnswer` says what came instead."""
    prove_doors(endpoint)
    # a router asks an engine every few seconds whether it is up: one that is since then is 503 till it heard so
    limit = time.monotonic() + (HEARS if model else 0)
    while True:
        try:
            return smoke.ask(endpoint.connect, say, max_tokens=max_tokens, key=key, model=model).as_dict()
        except smoke.NoAnswer as error:
            if "answered 503" not in str(error) or time.monotonic() > limit:
                raise
        time.sleep(1)


def prove_doors(endpoint: Endpoint) -> None:
    """It is there, for nobody without a key, and leads nowhere else."""
    if waiting := settled(endpoint, 30):
        raise smoke.NoAnswer(f"no answer at {endpoint.url} ({endpoint.address}): {waiting}")
    if open_doors := locks(endpoint):
        raise smoke.NoAnswer("; ".join(open_doors))


def prove_router(endpoint: Endpoint, key: str) -> None:
    """A model that nobody has is refused with the list of those that are; what answers otherwise is no router."""
    status, body = _answer(endpoint, "POST", CHAT, key, {"model": NOBODY, "messages": []})
    if status != 404 or "model_not_found" not in body:
        message = f"a request for the model '{NOBODY}' got {status}, expected 404 model_not_found: {body[:200]}"
        raise smoke.NoAnswer(message)
