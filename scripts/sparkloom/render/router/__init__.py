"""The one endpoint of several models: what Envoy is told, and who may ask whom (docs/endpoint.md).

Envoy does what a proxy does: connections, streams, health, queues, retries, metrics. The scripts beside this do what is
ours: whose key it is, which model a body names, what was used. Both are configured by the data that stands here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.errors import InputError

PATHS = (
    "/v1/models", "/v1/models/*", "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
    "/v1/messages/count_tokens", "/v1/embeddings", "/v1/rerank", "/v1/score", "/v1/tokenize", "/v1/detokenize",
)  # fmt: skip
GRANTED = re.compile(r"/v1(?:/[a-z0-9_-]+)+(?:/\*)?")


@dataclass(frozen=True, slots=True)
class Group:
    """One served model: how it is called, and where its rank 0 listens."""

    name: str  # what clients ask for
    address: str
    port: int
    key_file: str = ""  # in the router's container: the key that this engine alone takes
    model: str = ""  # the engine's own name of it, where that is another
    aliases: tuple[str, ...] = ()
    at_once: int = 64  # requests that its engine has at a time
    waiting: int = 256  # and as many more that wait here; the next one is told so
    health_port: int = 0  # of the supervisor, where that knows better than the engine
    health_path: str = "/health"
    facts: Mapping[str, Any] = field(default_factory=dict)  # for /v1/models: context, capabilities
    label: str = ""  # the name as a file may have it
    waker: str = ""  # host:port of who starts it when it is asked for; empty where it never sleeps
    secret: str = ""  # where its engine's own key is kept in the cluster; empty while it has none

    @property
    def file(self) -> str:
        return self.label or self.name

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def counted(self) -> str:
        """Under what its engine's cluster counts: Envoy takes what is behind a dot for a series' name."""
        return self.file.replace(":", "_")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the router grants all clients, and where it listens."""

    port: int = 8080  # of clients, where somebody before it ends TLS; else it sends them to TLS
    tls_port: int = 8443
    tls: str = ""  # folder of tls.crt and tls.key, mounted as a Secret; empty where somebody before it ends TLS
    metrics_port: int = 9090
    counts_port: int = 9902  # on loopback, of the clients' listener: what admission.lua counts is told there alone
    probe_port: int = 9091  # for the kubelet, which is answered in a flood too
    address: str = "0.0.0.0"
    admin_port: int = 9901  # on loopback: it can end the program
    folder: str = "/etc/sparkloom-router"  # of these files, in the router's container
    log: str = "/var/log/sparkloom/router/access.log"  # of a Spark: what was asked of models, with one older file
    swapped: str = "..data"  # in that folder, what the kubelet swaps whole; empty where files are put there one by one
    paths: tuple[str, ...] = PATHS  # `*` at the end is a model's name
    megabytes: int = 100  # of a request
    timeout: int = 8000  # seconds without a byte: a long prompt behind a full queue
    retry_after: int = 15  # seconds, of a model that is not up
    memory: int = 1024  # MiB that its container may take
    connections: int = 4096  # of clients
    page: str = ""  # host:port of the page that people look at; empty where there is none

    def file(self, name: str) -> str:
        """A file's path. A new one's name in the folder itself appears after the swap: Envoy would look too early."""
        return "/".join(part for part in (self.folder, self.swapped, name) if part)

    def __post_init__(self) -> None:
        """A body takes two and a half times its length at most (measured), until its answer begins: with a quarter of
        the memory for bodies, 100 MB need 656 MiB."""
        for path in self.paths or ("",):
            if not GRANTED.fullmatch(path):
                message = f"'{path}' is no path below /v1 in small letters, with /* at its end at most (gateway_paths)"
                raise InputError.single("the inventory", message, rule="gateway-path")
        needed = 4 * self.megabytes + 256
        if self.memory < needed:
            found = f"{self.memory} MiB hold no request of {self.megabytes} MB (gateway_body_megabytes)"
            message = f"{found}: expected {needed} at least"
            raise InputError.single("gateway_router_memory_mib", message, rule="router-memory")


def own_key_file(label: str, key: str) -> str:
    """Another key is another file, as Envoy takes one anew when its name changes; 48 bits of a hash tell nothing."""
    return f"own-{label}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
