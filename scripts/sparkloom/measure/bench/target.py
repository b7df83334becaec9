"""Where the server is: its URL taken apart, one answering address, TLS, and the key that no log may hold."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from sparkloom.base.errors import InputError
from sparkloom.measure.bench.http1 import Garbled, Response

if TYPE_CHECKING:
    import ssl

EXPECTED = "expected http://HOST:PORT or https://HOST:PORT, with or without /v1"


class Target(NamedTuple):
    host: str
    port: int
    base: str  # path in front of /v1
    tls: ssl.SSLContext | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return f"Target({self.url!r})"  # never the key

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.base}"

    @property
    def _host(self) -> Any:
        """As bytes where it is plain: text would load the tables of all the world's scripts."""
        return self.host.encode() if self.host.isascii() else self.host

    def message(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A whole request as bytes."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        lines = [
            f"{method} {self.base}{path} HTTP/1.1",
            f"Host: {host}:{self.port}",
            "User-Agent: sparkloom-bench",
            "Accept: */*",
            "Accept-Encoding: identity",
        ]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if self.key:
            lines.append(f"Authorization: Bearer {self.key}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    def addresses(self) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
        known = socket.getaddrinfo(self._host, self.port, type=socket.SOCK_STREAM)
        return [(family, (str(address[0]), int(address[1]))) for family, _, _, _, address in known]

    def get(self, path: str, timeout: float = 10.0, *, most: int = 8_000_000) -> tuple[int, bytes]:
        """One blocking GET on a connection of its own, for before and after the load; OSError or Garbled."""
        with socket.create_connection((self._host, self.port), timeout) as plain:
            wire = self.tls.wrap_socket(plain, server_hostname=self.host) if self.tls else plain
            wire.sendall(self.message("GET", path).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            response, pieces, size = Response(), list[bytes](), 0
            while not response.done:
                data = wire.recv(65_536)
                new = response.feed(data) if data else []
                if not data and not response.close():
                    raise Garbled("the answer broke off")
                pieces += new
                size += sum(map(len, new))
                if size > most:
                    raise Garbled(f"the answer to GET {path} is longer than {most:,} bytes")
        return response.status, b"".join(pieces)


def parse(url: str, *, ca: Path | None = None, key: str | None = None) -> Target:
    """Target of a URL; InputError names what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError.single("--url", f"'{url}': {error}; {EXPECTED}", rule="bad-url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError.single("--url", f"'{url}' is no address of a server; {EXPECTED}", rule="bad-url")
    if parts.username or parts.password:
        message = "a password in an address ends up in logs; use SPARKLOOM_API_KEY or --api-key-file"
        raise InputError.single("--url", message, rule="secret-in-url")
    if parts.query or parts.fragment or any(character <= " " or character > "~" for character in url):
        raise InputError.single(
            "--url", f"'{url}' has more than scheme, host, port and path; {EXPECTED}", rule="bad-url"
        )
    if ca and parts.scheme != "https":
        raise InputError.single("--ca", f"{url} speaks no TLS: write https://, or leave --ca out", rule="bad-url")
    base = parts.path.rstrip("/").removesuffix("/v1/chat/completions").removesuffix("/v1")
    tls = _tls(ca) if parts.scheme == "https" else None
    return Target(parts.hostname, port or (443 if tls else 80), base, tls, key)


def _tls(ca: Path | None) -> ssl.SSLContext:
    import ssl  # not for a server that speaks plain HTTP: loading it costs as much as a hundred tokens

    try:
        context = ssl.create_default_context(cafile=str(ca) if ca else None)
    except (OSError, ssl.SSLError) as error:
        message = f"no certificates in it: {getattr(error, 'strerror', None) or error}; expected a PEM file"
        raise InputError.single(str(ca), message, rule="bad-ca") from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def read_key(file: Path | None, environment: str | None) -> str | None:
    """The key from a file, or from the environment; InputError without ever quoting it."""
    where, text = ("SPARKLOOM_API_KEY", environment)
    if file:
        where = str(file)
        try:
            text = file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            message = f"cannot be read: {getattr(error, 'strerror', None) or 'it is no plain text'}"
            raise InputError.single(where, message, rule="unreadable") from None
    key = (text or "").strip()
    if file and not key:
        raise InputError.single(where, "is empty; expected the key on one line", rule="empty-input")
    if not key.isascii() or any(character <= " " or character == "\x7f" for character in key):
        raise InputError.single(where, "holds more than one word; expected the key on one line", rule="bad-key")
    return key or None
