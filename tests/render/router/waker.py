"""The HTTP side of a waker, for what stands before it: comment lines until the engine is there, then its own bytes."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

EVERY = 0.3  # seconds between two comment lines


class Waker:
    """`awake`: set once the engine at `port` is to be asked; until then who streams is kept, and others hear 503."""

    def __init__(self, port: int) -> None:
        self.port, self.awake, self.over = port, threading.Event(), False
        self.heard: list[dict[str, str]] = []
        self.left, self.held, self.looks = 0, 0, 0
        self._server: ThreadingHTTPServer | None = None
        self.place = 0
        self.up()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.place}"

    def up(self) -> None:
        server = type("Many", (ThreadingHTTPServer,), {"request_queue_size": 512, "daemon_threads": True})
        self._server = server(("127.0.0.1", self.place), type("Asked", (_Asked,), {"waker": self}))
        self.place = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self) -> None:
        """Nobody listens any more; what is on its way goes on."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def close(self) -> None:
        self.over = True
        self.awake.set()
        self.down()


class _Asked(BaseHTTPRequestHandler):
    waker: Waker
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.waker.looks += 1
        self._whole(200, "ready")

    def do_POST(self) -> None:
        waker = self.waker
        body = self.rfile.read(int(self.headers["content-length"]))
        waker.heard.append({**{name.lower(): value for name, value in self.headers.items()}, "body": body.decode()})
        waker.held += 1
        try:
            if waker.awake.is_set():
                self._hand_on(body)
            elif json.loads(body).get("stream"):
                self._keep(body)
            else:
                words = {"error": {"message": "alpha wakes, 42 s more", "type": "server_error", "code": "model_wakes"}}
                self._whole(503, json.dumps(words), ("retry-after", "42"))
        except OSError:
            waker.left += 1
            self.close_connection = True
        finally:
            waker.held -= 1

    def _whole(self, status: int, text: str, *more: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("content-length", str(len(text))), ("content-type", "application/json"), *more):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def _keep(self, body: bytes) -> None:
        self._begin(200, "text/event-stream")
        while not self.waker.awake.wait(EVERY):
            self._piece(b": alpha starts\n\n")
            if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                raise OSError("left")
        if self.waker.over:
            raise OSError("over")
        with contextlib.closing(self._asked(body)) as answer:
            self._pipe(answer)

    def _hand_on(self, body: bytes) -> None:
        with contextlib.closing(self._asked(body)) as answer:
            self._begin(answer.status, answer.headers["content-type"])
            self._pipe(answer)

    def _asked(self, body: bytes) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.waker.port, timeout=30)
        kept = {name: self.headers[name] for name in ("authorization", "content-type")}
        connection.request("POST", self.path, body, kept)
        return connection.getresponse()

    def _begin(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _pipe(self, answer: http.client.HTTPResponse) -> None:
        while piece := answer.read1(65536):
            self._piece(piece)
        self.wfile.write(b"0\r\n\r\n")

    def _piece(self, piece: bytes) -> None:
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass


class Probe:
    """What a supervisor says of its engine, at a port of its own."""

    def __init__(self) -> None:
        self.ready = True
        said = type("Said", (_Said,), {"probe": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), said)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Said(BaseHTTPRequestHandler):
    probe: Probe

    def do_GET(self) -> None:
        self.send_response(200 if self.probe.ready else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass
