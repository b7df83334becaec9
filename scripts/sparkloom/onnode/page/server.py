"""By GET the page's own files, by exact name, and the picture of the site; by POST what the page does (acting.py).

The router asks here, after it has looked at the client's key where one is needed; no policy lets anybody else in. The
files carry nothing of the site, so they need none.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom.onnode import http_server
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.page import acting
from sparkloom.onnode.page.acting import Desk

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
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
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


class Server(http_server.Server):
    def __init__(self, address: tuple[str, int], served: Mapping[str, File], kept: Kept, desk: Desk) -> None:
        super().__init__("page", address, Handler, AT_ONCE)
        self.served, self.kept, self.desk = served, kept, desk


class Handler(http_server.Handler):
    server: Server
    always = ALWAYS

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if self.has_body():
            self.close_connection = True  # what follows would be read as another request
            return self.text(HTTPStatus.BAD_REQUEST, "a GET has no body here")
        if path == DATA:
            return self._data()
        if path == LIVE:
            return self.text(HTTPStatus.OK, "the page's server runs")
        if (file := self.server.served.get(path)) is None:
            return self.text(HTTPStatus.NOT_FOUND, "no such file here")
        if self.headers.get("If-None-Match") == file.tag:
            return self.answer(HTTPStatus.NOT_MODIFIED, "", b"", {"ETag": file.tag, "Cache-Control": "no-cache"})
        return self.answer(HTTPStatus.OK, file.kind, file.content, {"ETag": file.tag, "Cache-Control": "no-cache"})

    def do_POST(self) -> None:
        path, size = self.path.partition("?")[0], self.headers.get("Content-Length", "")
        self.close_connection = True  # of what is refused here no byte is read
        if not path.startswith(acting.PATH):
            return self.text(HTTPStatus.METHOD_NOT_ALLOWED, "GET is all there is here", {"Allow": "GET"})
        if self.headers.get("Transfer-Encoding") or not size.isdecimal() or len(size) > 9 or int(size) > acting.LONGEST:
            return self.text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected {acting.LONGEST} bytes at most")
        self.close_connection = False
        headers = {name.title(): value for name, value in self.headers.items()}
        status, told = self.server.desk.answer(path, headers, self.rfile.read(int(size)))
        return self.answer(status, "application/json", json.dumps(told).encode(), {"Cache-Control": "no-store"})

    def _data(self) -> None:
        picture = self.server.kept.picture()
        if picture is None:
            error = {"error": {"message": self.server.kept.problem, "code": "no_picture"}}
            more = {"Cache-Control": "no-store", "Retry-After": "5"}
            return self.answer(HTTPStatus.SERVICE_UNAVAILABLE, "application/json", json.dumps(error).encode(), more)
        more = {"Cache-Control": "no-store", "Age": str(int(picture.age))}
        return self.answer(HTTPStatus.OK, "application/json", picture.body, more)


EVERY = 3.0  # seconds in which nobody looks again
WAITS = 4.0  # for a picture that is being made; then who asks gets the last one


class Picture(NamedTuple):
    """`age`: seconds since the cluster said this."""

    body: bytes
    age: float


class Kept:
    """Nobody looks at the cluster while nobody looks at the page."""

    def __init__(
        self, look: Callable[[], dict[str, Any]], *, every: float = EVERY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look, self._every, self._clock = look, every, clock
        self._looks, self._lock = http_server.Shared(self._make, WAITS), threading.Lock()
        self._picture: dict[str, Any] = {}
        self._at = self._tried = float("-inf")
        self._problem = ""

    def picture(self) -> Picture | None:
        """None where nothing could be seen yet: `problem` says why."""
        if self._clock() - self._tried >= self._every:
            self._looks.get()
        with self._lock:
            age = self._clock() - self._at
            if not self._picture:
                return None
            problems = [*self._picture["problems"], *filter(None, [self._problem])]
            return Picture(json.dumps({**self._picture, "problems": problems}).encode(), max(0.0, age))

    @property
    def problem(self) -> str:
        return self._problem or "the cluster has not answered yet"

    def _make(self) -> None:
        made, problem, begun = {}, "", self._clock()
        try:
            made = self._look()
        except Unreached as error:
            problem = str(error)
        except Exception as error:  # what nobody thought of must not end the thread that all wait for
            problem = f"what the cluster says cannot be read: {type(error).__name__}: {error}"
        with self._lock:
            if made:
                self._picture, self._at = made, begun
            self._problem, self._tried = problem, self._clock()
