"""GET and nothing else: the page's own files, by exact name, and the picture of the site.

The router asks here, after it has looked at the client's key where one is needed; no policy lets anybody else in. The
files carry nothing of the site, so they need none.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom.onnode.page.kept import Kept

DATA = "/page/data/status.json"
LIVE = "/live"  # the kubelet's question
INDEX = "index.html"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Scripts, styles and requests of this site alone; nothing inline, no frame, no form, and no text becomes markup.
POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types 'none'",
))  # fmt: skip
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
IDLE = 60.0  # seconds that a connection of the router may rest
AT_ONCE = 64  # connections


class File(NamedTuple):
    kind: str
    content: bytes
    tag: str


def files(folder: Path) -> dict[str, File]:
    """By the path that asks for each; a file of another kind is not for the page."""
    found = {}
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.suffix in KINDS:
            content = file.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            found["/" if file.name == INDEX else f"/page/{file.name}"] = File(KINDS[file.suffix], content, tag)
    if "/" not in found:
        raise FileNotFoundError(f"{folder} has no {INDEX}")
    return found


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], served: Mapping[str, File], kept: Kept) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Handler)
        self.served, self.kept = served, kept
        self._room = threading.BoundedSemaphore(AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of ours; anything else is said in one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"page: {type(error).__name__}: {error}", flush=True)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # what follows would be read as another request
            return self._text(HTTPStatus.BAD_REQUEST, "a GET has no body here")
        if path == DATA:
            return self._data()
        if path == LIVE:
            return self._text(HTTPStatus.OK, "the page's server runs")
        if (file := self.server.served.get(path)) is None:
            return self._text(HTTPStatus.NOT_FOUND, "no such file here")
        if self.headers.get("If-None-Match") == file.tag:
            return self._answer(HTTPStatus.NOT_MODIFIED, "", b"", {"ETag": file.tag, "Cache-Control": "no-cache"})
        return self._answer(HTTPStatus.OK, file.kind, file.content, {"ETag": file.tag, "Cache-Control": "no-cache"})

    def _data(self) -> None:
        told = self.server.kept.told()
        if told is None:
            error = {"error": {"message": self.server.kept.problem, "code": "no_picture"}}
            more = {"Cache-Control": "no-store", "Retry-After": "5"}
            return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "application/json", json.dumps(error).encode(), more)
        more = {"Cache-Control": "no-store", "Age": str(int(told.age))}
        return self._answer(HTTPStatus.OK, "application/json", told.body, more)

    def _text(self, status: HTTPStatus, text: str, more: Mapping[str, str] | None = None) -> None:
        self._answer(status, "text/plain; charset=utf-8", f"{text}\n".encode(), more or {})

    def _answer(self, status: HTTPStatus, kind: str, body: bytes, more: Mapping[str, str]) -> None:
        self.send_response(status)
        headers = {**ALWAYS, **({"Content-Type": kind} if kind else {}), **more}
        if status != HTTPStatus.NOT_MODIFIED:
            headers["Content-Length"] = str(len(body))
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses by itself: a method that is not ours, a line that is no request."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            return self._text(HTTPStatus.METHOD_NOT_ALLOWED, "GET is all there is here", {"Allow": "GET"})
        return self._text(HTTPStatus(code), "this is no request that can be answered here")

    def version_string(self) -> str:
        return "sparkloom"

    def log_message(self, format: str, *args: Any) -> None:
        """The router's log has every request, with its person."""
