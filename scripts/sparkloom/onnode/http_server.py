"""A small HTTP server: of pods beside the engines, and of each rank's supervisor."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Generic, TypeVar

from sparkloom.onnode import listening

Made = TypeVar("Made")
IDLE = 60.0  # seconds that a connection may say nothing


class Server(listening.Server):
    def __init__(self, name: str, address: tuple[str, int], handler: type[Handler], at_once: int) -> None:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        listener = socket.create_server(address, family=family, backlog=at_once)
        super().__init__(name, listener, handler, listening.ConnectionLimit(at_once, at_once))


class Handler(BaseHTTPRequestHandler):
    """`methods`: all that it answers; `always`: headers of every answer."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # a line without one is answered with a status too
    timeout = IDLE
    methods: tuple[str, ...] = ("GET",)
    always: Mapping[str, str] = {}

    def has_body(self) -> bool:
        return self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers

    def text(self, status: HTTPStatus, text: str, more: Mapping[str, str] | None = None) -> None:
        self.answer(status, "text/plain; charset=utf-8", f"{text}\n".encode(), more or {})

    def answer(self, status: HTTPStatus, kind: str, body: bytes, more: Mapping[str, str]) -> None:
        self.send_response(status)
        headers = {**self.always, **({"Content-Type": kind} if kind else {}), **more}
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
            told = f"{' and '.join(self.methods)} is all there is here"
            return self.text(HTTPStatus.METHOD_NOT_ALLOWED, told, {"Allow": ", ".join(self.methods)})
        return self.text(HTTPStatus(code), "this is no request that can be answered here")

    def version_string(self) -> str:
        return "sparkloom"

    def log_message(self, format: str, *args: Any) -> None:
        """The router's log has every request, with its person."""


class Shared(Generic[Made]):
    """What is made in a thread, once for all who ask meanwhile: an engine, or a cluster, may be slow."""

    def __init__(self, make: Callable[[], Made], patience: float) -> None:
        self._make, self._patience = make, patience
        self._pool, self._lock = ThreadPoolExecutor(1), threading.Lock()
        self._made: Future[Made] | None = None

    def get(self) -> Made | None:
        """None when it does not come in time; one that is late is waited for by the next who asks."""
        with self._lock:
            if self._made is None or self._made.done():
                self._made = self._pool.submit(self._make)
            made = self._made
        try:
            return made.result(self._patience)
        except Late:
            return None
