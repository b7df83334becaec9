"""The endpoint: how clients reach it, and whether it is what it should be: certificate, locks, a streamed answer."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode import smoke

CHAT = "/v1/chat/completions"
TAKES = 10.0  # seconds; Traefik waits for two before it takes the next change
CLOSED = ("/health", "/metrics", "/flush_cache", "/abort_request")


class Reach(NamedTuple):
    """Its address, the authority that vouches for it, the key's file: as playbooks/gateway.yml makes it by default."""

    url: str
    ca: Path | None
    key_file: Path | None


def reach(cluster: Cluster) -> Reach:
    """Every Spark answers; the first one is as good as any."""
    first = cluster.nodes[0]
    if not first.management_address:
        message = f"{first.name} has no management_address, so the endpoint is not known; --url names it"
        raise InputError.single("hosts.yml", message, rule="no-endpoint")
    kept = Path("~/.config/sparkloom").expanduser() / cluster.name
    ca, key = kept / "ca.pem", kept / "api-key"
    return Reach(f"https://{first.management_address}", ca if ca.exists() else None, key if key.exists() else None)


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
        host = self.name or self.address
        return f"https://{host}{'' if self.port == 443 else f':{self.port}'}/v1"

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.trust or None)
        connection = http.client.HTTPSConnection(self.address, self.port, timeout=self.timeout, context=context)
        raw = socket.create_connection((self.address, self.port), timeout=self.timeout)
        connection.sock = context.wrap_socket(raw, server_hostname=self.name or self.address)
        return connection


def _status(endpoint: Endpoint, method: str, path: str, key: str = "") -> int:
    connection = endpoint.connect()
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        connection.request(method, path, json.dumps({}) if method == "POST" else None, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def settled(endpoint: Endpoint, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> str:
    """Traefik takes new objects within a second or two; what it says at last when it does not."""
    limit, last = time.monotonic() + seconds, "nothing"
    while time.monotonic() < limit:
        try:
            status = _status(endpoint, "POST", CHAT)
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
        status = _status(endpoint, "POST", CHAT, key)
        if status != 401:
            found.append(f"{CHAT} {words} answered {status}, expected 401")
    for path in CLOSED:
        status = _status(endpoint, "GET", path)
        if status != 404:
            found.append(f"{path} answered {status} through the gateway, expected 404")
    return found


def _shut(endpoint: Endpoint, seconds: float) -> list[str]:
    """The doors that stay open: what stood there before may answer until Traefik has taken what was applied."""
    limit = time.monotonic() + seconds
    while (found := locks(endpoint)) and time.monotonic() < limit:
        time.sleep(0.5)
    return found


def prove(endpoint: Endpoint, key: str, max_tokens: int, say: Callable[[str], None]) -> dict[str, Any]:
    """A streamed answer with the key; `smoke.NoAnswer` says what came instead."""
    if waiting := settled(endpoint, 30):
        raise smoke.NoAnswer(f"no answer at {endpoint.url} ({endpoint.address}): {waiting}")
    if open_doors := _shut(endpoint, TAKES):
        raise smoke.NoAnswer("; ".join(open_doors))
    return smoke.ask(endpoint.connect, say, max_tokens=max_tokens, key=key).as_dict()
