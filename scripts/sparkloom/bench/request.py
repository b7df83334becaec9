"""One request: what came when, and the figures that follow from it.

Arrivals are stamped by the loop and read here later, so that reading one stream never delays the stamp of another.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from sparkloom.bench import chunk
from sparkloom.bench.http1 import Garbled, Response
from sparkloom.bench.sse import Events
from sparkloom.guard import Guard, Verdict

TAIL = 400
KEPT_BODY = 2_000


@dataclass(slots=True)
class Request:
    """`intended`: when the schedule wanted it to start; `sent`: when its bytes went out; in seconds of one clock."""

    number: int
    prompt: str
    body: bytes
    intended: float
    guarded: bool = True
    sent: float = 0.0
    ended: float = 0.0
    connect_s: float = 0.0
    status: int = 0
    error: str | None = None
    detail: str = ""
    finish: str | None = None
    usage: dict[str, Any] | None = None
    times: array[float] = field(default_factory=lambda: array("d"))
    sizes: array[int] = field(default_factory=lambda: array("l"))
    counted: array[int] = field(default_factory=lambda: array("l"))
    reasoning_chars: int = 0
    tail: str = ""
    verdict: Verdict | None = None
    retried: int = 0

    @property
    def ok(self) -> bool:
        return self.error is None and bool(self.ended)

    @property
    def over(self) -> bool:
        return bool(self.ended)

    def fail(self, kind: str, detail: str, now: float) -> None:
        if not self.ended:
            self.error, self.detail, self.ended = kind, detail[:300], now


class Reader:
    """Reads one request's answer from the bytes of its connection."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response = Response()
        self.finished = False  # [DONE] was seen: what is still to come is no more of it
        self._events = Events()
        self._guard = Guard() if request.guarded else None
        self._said: list[str] = []
        self._kept = 0
        self._body = b""

    def feed(self, data: bytes, at: float) -> None:
        """Bytes that arrived at `at`. Afterwards `request.over` says whether the request has ended."""
        try:
            pieces = self.response.feed(data)
            if self.response.status == 200:
                for piece in pieces:
                    for event in self._events.feed(piece):
                        self._event(event, at)
            elif self.response.status:
                self._refused(pieces)
        except (Garbled, chunk.NoChunk, ValueError) as error:
            self.request.fail("garbled", str(error), at)
            return
        if self.response.done:
            self._complete(at)

    def closed(self, at: float, why: str = "") -> None:
        """The connection has ended."""
        if self.request.over:
            return
        if self.response.close():
            self._complete(at)
            return
        if self.finished:
            self._end(at)
        elif not self.response.status:
            self.request.fail("cut", why or "closed without an answer", at)
        else:
            self.request.fail("cut", f"{why or 'closed'} after {len(self.request.times)} chunks", at)

    def _event(self, data: bytes, at: float) -> None:
        if data == chunk.DONE:
            self.finished = True
            return
        read = chunk.read(data)
        request = self.request
        if read.error:
            request.fail("engine-error", read.error, at)
        request.finish = read.finish or request.finish
        if read.usage:
            request.usage = read.usage
        if not read.texts:
            return
        size = 0
        for channel, text in read.texts:
            size += len(text)
            if channel == "reasoning":
                request.reasoning_chars += len(text)
            self._keep(text)
            if self._guard:
                self._guard.feed(text, channel, at)
        request.times.append(at)
        request.sizes.append(size)
        request.counted.append(_count(read.usage))

    def _keep(self, text: str) -> None:
        self._said.append(text)
        self._kept += len(text)
        if self._kept > 8 * TAIL:
            self._said = ["".join(self._said)[-TAIL:]]
            self._kept = TAIL

    def _refused(self, pieces: list[bytes]) -> None:
        self._body = (self._body + b"".join(pieces))[:KEPT_BODY]

    def _complete(self, at: float) -> None:
        """The body is whole."""
        request = self.request
        request.status = self.response.status
        if request.over:
            return
        if request.status != 200:
            request.fail(f"http-{request.status}", self._words(), at)
            return
        for event in self._events.finish():
            try:
                self._event(event, at)
            except chunk.NoChunk as error:
                request.fail("garbled", str(error), at)
        kind = self.response.headers.get("content-type", "")
        if not request.times and not kind.startswith("text/event-stream"):
            request.fail("no-stream", f"the answer is {kind or 'of no type'}, not text/event-stream", at)
        elif not (self.finished or request.finish):
            request.fail("cut", f"ended after {len(request.times)} chunks without a reason or [DONE]", at)
        else:
            self._end(at)

    def _end(self, at: float) -> None:
        request = self.request
        request.status = self.response.status
        if not request.times:
            request.fail("empty", "the stream ended without a single token", at)
        request.ended = request.ended or at
        request.tail = "".join(self._said)[-TAIL:]

    def _words(self) -> str:
        where = self.response.headers.get("location")
        later = self.response.headers.get("retry-after")
        try:
            said = chunk.read(self._body).error
        except chunk.NoChunk:
            said = None
        words = said or " ".join(self._body.decode(errors="replace").split())
        return words[:240] + (f"; Location: {where}" if where else "") + (f"; Retry-After: {later}" if later else "")

    def judge(self) -> None:
        """The guard's verdict, also over a stream that broke off."""
        request = self.request
        request.tail = request.tail or "".join(self._said)[-TAIL:]
        if self._guard and request.verdict is None:
            request.verdict = self._guard.finish(request.usage if request.ok else None)


def _count(usage: dict[str, Any] | None) -> int:
    """Tokens so far, where the engine says so with every chunk; -1 else."""
    tokens = (usage or {}).get("completion_tokens")
    return tokens if isinstance(tokens, int) else -1
