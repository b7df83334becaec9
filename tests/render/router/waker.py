"""The HTTP side of a waker, for what stands before it: who streams is held, and sent to the engine in the end."""

from __future__ import annotations

import json
import select
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOK = 0.1  # seconds until it sees that a client left


class Waker:
    """`awake`: set once the engine is to be asked; until then who streams is kept, and others hear 503."""

    def __init__(self) -> None:
        self.awake, self.over = threading.Event(), False
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
            self._held()
        except OSError:
            waker.left += 1
        finally:
            waker.held -= 1
        self.close_connection = True

    def _held(self) -> None:
        while "x-sparkloom-stream" in self.headers and not self.waker.awake.wait(LOOK):
            if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                raise OSError("left")
        if self.waker.over:
            raise OSError("over")
        words = {"error": {"message": "alpha wakes, 42 s more", "type": "server_error", "code": "model_wakes"}}
        awake = [("x-sparkloom-awake", "true")] if self.waker.awake.is_set() else []
        self._whole(503, json.dumps(words), ("retry-after", "42"), *awake)

    def _whole(self, status: int, text: str, *more: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("content-length", str(len(text))), ("content-type", "application/json"), *more):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

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
