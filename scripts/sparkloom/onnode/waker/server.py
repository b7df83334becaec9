"""Holds a request while its group starts, and says why not where it does not.

The router asks with the client's whole request, after it has looked at the key. What it brings in its body is thrown
away: to "awake" the router answers by sending the request to the engine. No policy lets anybody else in, and
whoever comes shows the key of the group's engine, as the router does.
"""

from __future__ import annotations

import hmac
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from sparkloom.onnode import http_server, key_table, prometheus
from sparkloom.onnode.waker import metrics, refusal
from sparkloom.onnode.waker.controller import Controller
from sparkloom.onnode.waker.groups import PLACE, Groups
from sparkloom.onnode.waker.refusal import GROUP, STREAM, Refusal

READY, LIVE, METRICS = "/ready", "/live", "/metrics"
JSON, TEXT = "application/json", "text/plain; charset=utf-8"
PATIENCE = 5.0  # seconds in which one who does not stream is held
LOOK = 1.0  # second after which a client that left is noticed
PIECE = 64 << 10
STUCK = 300.0  # seconds without a round of the controller
AT_ONCE = 1024  # connections


class Server(http_server.Server):
    def __init__(self, address: tuple[str, int], groups: Groups, controller: Controller) -> None:
        super().__init__("waker", address, Handler, AT_ONCE)
        self.groups, self.controller = groups, controller
        self.waiting = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """A request counts until its answer is written: whoever leaves waits for that."""
        with self.controller.changed:
            self.waiting += 1
        try:
            yield
        finally:
            with self.controller.changed:
                self.waiting -= 1

    def page(self, path: str) -> tuple[int, str, str]:
        """Status, kind and text."""
        if path == READY:
            ok = self.controller.file.known and self.controller.looked > float("-inf") and not self.groups.leaving
            return (200 if ok else 503), TEXT, "ready\n" if ok else f"not ready: {self.groups.problem or 'leaves'}\n"
        if path == LIVE:
            ok = self.groups.clock() - self.controller.round_at < STUCK
            return (200 if ok else 503), TEXT, "alive\n" if ok else "no look at the cluster came to an end for long\n"
        if path == METRICS:
            return 200, prometheus.KIND, metrics.page(self.groups, self.controller)
        return 404, TEXT, "no such page here\n"

    def proven(self, name: str, shown: str) -> bool:
        state = self.groups.states.get(name)
        given = key_table.digest(shown.removeprefix("Bearer "))
        return not state or not state.group.proof or hmac.compare_digest(given, state.group.proof)

    def awaited(self, name: str, streams: bool, gone: Callable[[], bool]) -> Refusal | None:
        """The answer when there is one; None for a client that left."""
        self._ask_again(name)
        with self.controller.changed:
            if refused := self.groups.ask(name):
                return refused
            if not self.groups.states[name].ready:
                self.controller.asked.set()
            self.groups.enter(name)
            try:
                return self._wait(name, streams, gone)
            finally:
                self.groups.leave(name)

    def _ask_again(self, name: str) -> None:
        """The router asks here where it does not reach the engine: an awake one may have gone since the last look."""
        state = self.groups.states.get(name)
        if state and state.ready and not self.controller.cluster.ready(state.group):
            with self.controller.changed:
                self.groups.silent(name)

    def _wait(self, name: str, streams: bool, gone: Callable[[], bool]) -> Refusal | None:
        clock = self.groups.clock
        end = clock() + (self.groups.states[name].group.limit_seconds + PLACE if streams else PATIENCE)
        while (verdict := self.groups.verdict(name)) is False:
            if (left := end - clock()) <= 0:
                return self.groups.wakes(name)
            self.controller.changed.wait(min(left, LOOK))
            if gone():
                return None
        return refusal.awake(name) if verdict is True else verdict


class Handler(http_server.Handler):
    server: Server
    methods = ("GET", "POST")

    def do_GET(self) -> None:
        self.close_connection = self.close_connection or self.has_body()
        with self.server.controller.changed:
            status, kind, text = self.server.page(self.path.partition("?")[0])
        self.answer(HTTPStatus(status), kind, text.encode(), {})

    def do_POST(self) -> None:
        self.close_connection = True
        if not self._body_is_read():
            return self._tell(Refusal(400, "bad_request", "a request has one Content-Length, and as long a body"))
        name = self.headers.get(GROUP, "") if self.path.startswith("/v1/") else ""
        if not self.server.proven(name, self.headers.get("Authorization", "")):
            return self._tell(refusal.unproven(name))
        with self.server.held():
            told = self.server.awaited(name, self.headers.get(STREAM) == "true", self._left)
            if told:
                self._tell(told)

    def _body_is_read(self) -> bool:
        told = self.headers.get_all("Content-Length") or []
        if "Transfer-Encoding" in self.headers or len(told) != 1 or not told[0].isdecimal() or len(told[0]) > 15:
            return False
        rest = int(told[0])
        while rest and (piece := self.rfile.read(min(PIECE, rest))):
            rest -= len(piece)
        return not rest

    def _left(self) -> bool:
        """The router closes the connection when its client does."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _tell(self, told: Refusal) -> None:
        self.answer(HTTPStatus(told.status), JSON, told.body(), told.headers())
