"""The page's own server on loopback, and before it as much of a router as a browser needs: keys, limits, a stream."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any

from sparkloom.onnode.page.acting import Desk
from sparkloom.onnode.page.server import Kept, Server, files
from sparkloom.onnode.page.site import Site
from sparkloom.render.manifests import page
from tests.onnode.now.recorded import ALICES, BOBS, Recorded

GOOD, PLAIN, LIMITED = ALICES, BOBS, "sk-limited-now"
BAD_TEXT = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script> & <b>bold</b>"


@contextmanager
def serving(server: HTTPServer) -> Iterator[None]:
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def running(site: Recorded, every: float = 0.2) -> Iterator[Server]:
    site.tell()
    kept = Kept(site.gathers(time.time).look, every=every)
    desk = Desk(Site(site, site.namespace))
    server = Server(("127.0.0.1", 0), files(page.STATIC), kept, desk)
    with serving(server):
        yield server


class Front(ThreadingHTTPServer):
    """`chat`: what each answer is made of; `left`: how many answers a client broke off."""

    daemon_threads = True

    def __init__(self, behind: Server, names: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behind, self.names = behind.server_address[1], names
        self.chat = ["Hello", " ", BAD_TEXT]
        self.waking: list[str] = []  # lines before the first word, each for a while
        self.endless = False
        self.refuses: tuple[int, dict[str, str], str] | None = None
        self.left = 0
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def fronted(site: Recorded) -> Iterator[Front]:
    with running(site) as server:
        front = Front(server, [group["names"][0] for group in site.facts["groups"]])
        with serving(front):
            yield front


class Handler(BaseHTTPRequestHandler):
    server: Front
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith(("/page/data/", "/v1/")) and not self._admitted():
            return
        if self.path == "/v1/models":
            models = [{"id": name, "object": "model"} for name in self.server.names]
            return self._json(200, {"object": "list", "data": models})
        return self._behind("GET")

    def _behind(self, method: str, body: bytes | None = None) -> None:
        """As admission.lua has it: the key comes along only where something is done."""
        behind = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=10)
        behind.putrequest(method, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "cookie") and (body is not None or name.lower() != "authorization"):
                behind.putheader(name.lower(), value)
        behind.endheaders(body)
        answer = behind.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name not in ("Server", "Date"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        behind.close()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._admitted():
            return
        if self.path.startswith("/page/act/"):
            return self._behind("POST", sent)
        body = json.loads(sent)
        self.server.bodies.append(body)
        if self.server.refuses:
            status, more, text = self.server.refuses
            return self._json(status, {"error": {"message": text}}, more)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self._stream()
        except OSError:
            self.server.left += 1

    def _stream(self) -> None:
        for line in self.server.waking:
            self.wfile.write(f"{line}\n\n".encode())
            self.wfile.flush()
            time.sleep(1)
        self._event({"choices": [{"delta": {"reasoning_content": "hm"}}]})
        for piece in self.server.chat:
            self._event({"choices": [{"delta": {"content": piece}}]})
            time.sleep(0.02)
        while self.server.endless:
            self._event({"choices": [{"delta": {"content": "word "}}]})
            time.sleep(0.02)
        self._event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        self._event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 21}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, data: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()

    def _admitted(self) -> bool:
        key = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        self.server.keys.add(key)
        if key in (GOOD, PLAIN):
            return True
        if key == LIMITED:
            self._json(429, {"error": {"message": "60 requests a minute"}}, {"Retry-After": "7"})
        else:
            self._json(401, {"error": {"message": "the API key is missing or wrong"}})
        return False

    def _json(self, status: int, data: dict[str, Any], more: dict[str, str] | None = None) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **(more or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        """A tab that is closed leaves in the middle."""
        with suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        pass
