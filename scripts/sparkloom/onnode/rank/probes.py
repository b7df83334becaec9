"""The kubelet's questions, answered over HTTP by a thread that does nothing else; the router's too.

A probe that starts a Python took longer than the kubelet waits on a machine that compiles on all its cores, and four
healthy ranks were killed for it. An answer from here costs no process and does not wait for the supervisor's own work.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable

from sparkloom.onnode import listening, prometheus
from sparkloom.onnode.rank import scraped
from sparkloom.onnode.rank.order import STATUS_PATH
from sparkloom.onnode.rank.status_log import StatusLog, verdict

END = b"\r\n\r\n"
LONGEST = 4096  # bytes of a question
EACH, TOTAL = 512, 640  # who asks at once, of one address and of all
BACKLOG = 512  # of the kernel: who is dropped by it comes a second late
PATIENCE = 10.0  # for a question to be asked in full
AGAIN = 2.0
ASKED = {"/ready": "ready", "/live": "live", "/started": "started"}


class Probes:
    """`GET /ready`, `/live`, `/started`: 200 or 503, and the words for the pod's events."""

    def __init__(self, log: StatusLog, address: str, port: int) -> None:
        self.log, self.address, self.port = log, address or "127.0.0.1", port
        self._limit = listening.ConnectionLimit(EACH, TOTAL)
        self._scraped = scraped.Scraped(log)

    def start(self) -> None:
        threading.Thread(target=self._run, name="probes", daemon=True).start()

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        """For good; a port that something else holds is named and tried again."""
        while True:
            try:
                listener = listening.at(self.address, self.port, BACKLOG)
            except OSError as error:
                where = f"{self.address}:{self.port}"
                self.log.note("probes", f"cannot listen at {where}: {error.strerror}; the kubelet gets no answer")
                await asyncio.sleep(AGAIN)
                continue
            await listening.accept(listener, self._taken)

    async def _taken(self, given: socket.socket, address: str) -> None:
        """Without a stream: a flood of questions costs as little as it can."""
        me = asyncio.current_task()
        assert me is not None
        self._limit.enter(me, address, me.cancel)
        late = asyncio.get_running_loop().call_later(PATIENCE, me.cancel)
        try:
            await self._answer(given)
        except (OSError, asyncio.CancelledError):  # gone, late, or it had to make room
            pass
        finally:
            late.cancel()
            self._limit.leave(me)
            given.close()

    async def _answer(self, given: socket.socket) -> None:
        loop, request = asyncio.get_running_loop(), b""
        while END not in request and len(request) < LONGEST:
            if not (piece := await loop.sock_recv(given, LONGEST - len(request))):
                return
            request += piece
        path = next((path for path in scraped.PAGES if END in request and asks(request, path)), "")
        await loop.sock_sendall(given, await self._page(path) if path else self.told(request))

    async def _page(self, path: str) -> bytes:
        if (page := await self._scraped.page(path)) is None:
            return _http("503 Service Unavailable", "the engine gives no counters now\n")
        return _http("200 OK", page, prometheus.KIND)

    def told(self, request: bytes) -> bytes:
        if END not in request:
            return _http("431 Request Header Fields Too Large", f"a question has {LONGEST} bytes at most\n")
        request = request[: request.index(END)] + END
        if asks(request, STATUS_PATH):  # for the page and the waker, whom policies let in
            return _http("200 OK", json.dumps(dict(self.log.status)), "application/json")
        return answer(request, self.verdict)

    def verdict(self, what: str) -> tuple[bool, str]:
        return verdict(what, dict(self.log.status), time.time())


def asks(request: bytes, path: str) -> bool:
    return request.split(b" ", 2)[1:2] == [path.encode()]


def answer(request: bytes, judge: Callable[[str], tuple[bool, str]]) -> bytes:
    words = request.split(b"\r\n", 1)[0].decode(errors="replace").split(" ")
    asked = ASKED.get(words[1]) if len(words) == 3 and words[0] == "GET" else None
    good, text = judge(asked) if asked else (False, f"ask one of {', '.join(ASKED)}")
    status = "404 Not Found" if asked is None else "200 OK" if good else "503 Service Unavailable"
    return _http(status, f"{text}\n")


def _http(status: str, text: str, kind: str = "text/plain; charset=utf-8") -> bytes:
    body = text.encode()
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + body
