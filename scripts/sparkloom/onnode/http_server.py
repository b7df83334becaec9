"""A small HTTP server for pods beside the engines: a thread for each connection, and a bound on connections."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

IDLE = 60.0  # seconds that a connection may say nothing


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, name: str, address: tuple[str, int], handler: type[Handler], at_once: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.request_queue_size = at_once
        super().__init__(address, handler)
        self.name = name
        self._room = threading.BoundedSemaphore(at_once)

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
            print(f"{self.name}: {type(error).__name__}: {error}", flush=True)


class Handler(BaseHTTPRequestHandler):
    """`methods`: all that it answers; `always`: headers of every answer."""

    protocol_version = "HTTP/1.1"
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
