"""What clients ask of the page and of the waker, and the table of their keys."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

from sparkloom.base.errors import InputError
from sparkloom.onnode import key_table
from sparkloom.onnode.key_table import NotChanged
from sparkloom.onnode.page import acting, server
from sparkloom.onnode.page.site import Site
from sparkloom.onnode.waker import server as waker
from sparkloom.onnode.waker.groups import Groups
from sparkloom.onnode.waker.state import Group, Seen
from tests.security.guided.peers import Plug
from tests.security.guided.target import JSON_WORDS, Target

OWNER = "sk-owner"
KEYS = key_table.text(
    [key_table.Entry(key_table.digest(OWNER), "owner", admin=1), key_table.Entry("b" * 64, "bob", by="x")]
)


class _Cluster:
    """All that the page asks the cluster for."""

    def api(self, path: str, query: Mapping[str, str], accept: str) -> Any:
        if path.endswith(f"/secrets/{key_table.NAME}"):
            return {"data": {key_table.FILE: base64.b64encode(KEYS.encode()).decode()}}
        return {"items": [], "data": {}}

    def change(self, method: str, path: str, content: Any, kind: str = "") -> Any:
        return json.dumps(content)

    def text(self, path: str, query: Mapping[str, str]) -> str:
        return ""

    def ask(self, pod: Any, port: int, path: str) -> bytes:
        return b""


DESK = acting.Desk(Site(cast("Any", _Cluster()), "site", lambda: 1e9), b"secret")
FILES = {"/": server.File("text/html", b"<p>", '"1"'), "/page/x.js": server.File("text/javascript", b"1", '"2"')}
PAGE = SimpleNamespace(served=FILES, kept=server.Kept(lambda: {"problems": [], "nodes": []}), desk=DESK)
TOKEN = DESK._token("0" * 16, DESK._administrator(f"Bearer {OWNER}"))
HEADERS = {"Host": "x", "Origin": "http://x", "Authorization": f"Bearer {OWNER}", acting.TOKEN: TOKEN}


def page(data: bytes) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        server.Handler(cast("Any", Plug(data)), ("127.0.0.1", 1), cast("Any", PAGE))


def page_requests() -> Iterator[bytes]:
    told = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    bodies = {
        "session": {},
        "keys": {},
        "usage": {},
        "log": {"pod": "p"},
        "key-revoke": {"name": "bob"},
        "stop": {"group": "g"},
        "key-add": {"name": "eve", "models": ["m"], "days": 3, "admin": True},
    }
    for name, body in bodies.items():
        text = json.dumps(body)
        yield f"POST {acting.PATH}{name} HTTP/1.1\r\n{told}Content-Length: {len(text)}\r\n\r\n{text}".encode()
    told += "Content-Length: "
    for name, given in (("key-revoke", {"name": "bob"}), ("key-add", {"name": "eve"})):  # the second time
        _, will = DESK.answer(acting.PATH + name, HEADERS, json.dumps(given).encode())
        text = json.dumps({**given, "confirm": will["confirm"]})
        yield f"POST {acting.PATH}{name} HTTP/1.1\r\n{told}{len(text)}\r\n\r\n{text}".encode()
    yield b'GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: "1"\r\n\r\nGET /live?x HTTP/1.0\r\n\r\n'
    yield f"POST {acting.PATH}keys HTTP/1.1\r\nContent-Length: {'9' * 5000}\r\n\r\n".encode()
    yield b"GET /page/data/status.json HTTP/1.1\r\nHost: x\r\n\r\n"


def _groups() -> Groups:
    ticks = itertools.count()
    made = Groups(lambda: float(next(ticks)))  # who waits has waited long enough at the next look
    group = Group("glm", "glm", "glm", "glm.site", ("glm-rank0",), 300.0, "", 60.0, 600.0, key_table.digest(OWNER))
    made.replace([group, Group("day", "day", "day", "day.site", ("day-rank0",), 300.0, "", 60.0, 3.0)])
    made.looked("glm", Seen(1, 1, True, "", 0.0), "used")
    made.looked("day", Seen(0, 0, False, "", 0.0), "idle")
    made.problem = ""
    return made


class _Condition:
    """Nobody else is there."""

    def __enter__(self) -> _Condition:
        return self

    def __exit__(self, *of: object) -> None: ...

    def wait(self, seconds: float) -> None: ...

    def notify_all(self) -> None: ...


class _Waker(waker.Server):
    def __init__(self) -> None:
        self.groups, self.waiting = _groups(), 0
        told = MagicMock(looked=0.0, round_at=0.0, changed=_Condition())
        told.lease.mine = True
        self.controller = told


class _Asked(waker.Handler):
    def _left(self) -> bool:
        return False


def asked(data: bytes) -> None:
    """The waker, with a group that is awake and one that sleeps."""
    _Asked(cast("Any", Plug(data)), ("127.0.0.1", 1), cast("Any", _Waker()))


def waker_requests() -> Iterator[bytes]:
    for name, streams in (("glm", "true"), ("day", "false"), ("none", "")):
        told = f"Host: x\r\nAuthorization: Bearer {OWNER}\r\n{waker.GROUP}: {name}\r\n{waker.STREAM}: {streams}\r\n"
        yield f"POST /v1/chat/completions HTTP/1.1\r\n{told}Content-Length: 2\r\n\r\n{{}}".encode()
    yield f"POST /v1/x HTTP/1.1\r\nContent-Length: {'9' * 5000}\r\n\r\n".encode()
    for path in (waker.READY, waker.LIVE):
        yield f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def key_lines(data: bytes) -> None:
    """The Secret that the router and the page go by: back as it was, where it is one."""
    secret = {"data": {key_table.FILE: base64.b64encode(data).decode()}}
    kept = key_table.of_secret(secret)
    for one in key_table.read(key_table.text(kept)):
        one.opens(1e9), one.administers(1e9)


HTTP_WORDS = (
    "POST /page/act/",
    "HTTP/1.1\r\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Authorization: Bearer ",
    "\r\n\r\n",
    "9" * 20,
    *JSON_WORDS,
)
TARGETS = {
    "page": Target(page, page_requests, (), HTTP_WORDS),
    "waker": Target(asked, waker_requests, (), HTTP_WORDS),
    "key-table": Target(
        key_lines, lambda: [KEYS.encode()], (NotChanged, InputError), (" name=", " models=", " ends=", " admin=1")
    ),
}
