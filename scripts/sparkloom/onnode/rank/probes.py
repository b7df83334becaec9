"""The kubelet's questions, answered over HTTP by threads of their own; the router's, the page's, a Prometheus' too.

A probe that starts a Python took longer than the kubelet waits on a machine that compiles on all its cores, and four
healthy ranks were killed for it. An answer from here costs no process and does not wait for the supervisor's own work.
"""

from __future__ import annotations

import hmac
import io
import json
import socket
import threading
import time
from functools import partial
from http import HTTPStatus
from typing import Any

from sparkloom.onnode import http_server, listening, prometheus
from sparkloom.onnode.http_server import Shared
from sparkloom.onnode.rank import answers, exposition, procs
from sparkloom.onnode.rank.plan import STATUS_PATH
from sparkloom.onnode.rank.status_log import StatusLog, verdict

LONGEST = 4096  # bytes of a question
EACH, TOTAL = 512, 640  # who asks at once, of one address and of all
BACKLOG = 512  # of the kernel: who is dropped by it comes a second late
PATIENCE = 10.0  # for a question to be asked in full
SCRAPED = 8.0  # less than a scrape waits
AGAIN = 2.0
CLIENTS = "/clients/"  # ADDRESS:PORT of one that is to be cut off
ASKED = {"/ready": "ready", "/live": "live", "/started": "started"}


def start(log: StatusLog, address: str, port: int) -> None:
    threading.Thread(target=_serve, args=(log, address or "127.0.0.1", port), name="probes", daemon=True).start()


def _serve(log: StatusLog, address: str, port: int) -> None:
    """For good; a port that something else holds is named and tried again."""
    while True:
        try:
            listener = listening.at(address, port, BACKLOG)
        except OSError as error:
            why = f"cannot listen at {address}:{port}: {error.strerror}; the kubelet gets no answer"
            log.note("probes", why)
            time.sleep(AGAIN)
            continue
        Server(log, listener).serve_forever()


class Server(listening.Server):
    def __init__(self, log: StatusLog, listener: socket.socket) -> None:
        super().__init__("probes", listener, Handler, listening.ConnectionLimit(EACH, TOTAL))
        self.log = log
        self.pages = {path: Shared(partial(made, log), SCRAPED) for path, made in exposition.PAGES.items()}


class Handler(http_server.Handler):
    """`GET /ready`, `/live`, `/started`: 200 or 503, and the words for the pod's events. One question a connection.

    `DELETE /clients/ADDRESS:PORT`, with the engine's own key: the router ends the stream of a key that is no more.
    """

    server: Server
    methods = ("GET", "DELETE")

    def setup(self) -> None:
        super().setup()
        self.question = Question(self.connection)
        self.rfile = io.BufferedReader(self.question, LONGEST)

    def do_GET(self) -> None:
        self.close_connection = True
        status = dict(self.server.log.status)
        if not self.question.left:
            too_long = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.text(too_long, f"a question has {LONGEST} bytes at most")
        elif shared := self.server.pages.get(self.path):
            self._page(shared.get())
        elif self.path == STATUS_PATH:  # for the page and the waker, whom policies let in
            self.answer(HTTPStatus.OK, "application/json", json.dumps(status).encode(), {})
        elif self.path in ASKED:
            good, text = verdict(ASKED[self.path], status, time.time())
            self.text(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, text)
        else:
            self.text(HTTPStatus.NOT_FOUND, f"ask one of {', '.join(ASKED)}")

    def do_DELETE(self) -> None:
        self.close_connection = True
        key, shown = answers.key(), self.headers.get("Authorization", "")
        if not key or not hmac.compare_digest(shown.encode(), f"Bearer {key}".encode()):
            return self.text(HTTPStatus.UNAUTHORIZED, "the engine's own key is asked for")
        if self.path.startswith(CLIENTS) and procs.cut(self.server.log.plan.port, self.path.removeprefix(CLIENTS)):
            return self.text(HTTPStatus.OK, "cut off")
        return self.text(HTTPStatus.NOT_FOUND, "no such client, or not within reach")

    def _page(self, page: str | None) -> None:
        if page is None:
            return self.text(HTTPStatus.SERVICE_UNAVAILABLE, "the engine gives no counters now")
        return self.answer(HTTPStatus.OK, prometheus.KIND, page.encode(), {})


class Question(io.RawIOBase):
    """What comes over a connection: no more bytes, and for no longer, than one question has."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.left, self.until = connection, LONGEST, time.monotonic() + PATIENCE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.left:
            return 0
        self.connection.settimeout(max(0.001, self.until - time.monotonic()))
        size = self.connection.recv_into(memoryview(buffer)[: self.left])
        self.left -= size
        return size
