"""One request: what came when, and the figures that follow from it.

Arrivals are stamped by the loop and read here later, so that reading one stream never delays the stamp of another.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from sparkloom.measure.bench import chunk
from sparkloom.measure.bench.http1 import Garbled, Response
from sparkloom.measure.bench.shape import Shape, learn
from sparkloom.measure.guard.batch import TAIL
from sparkloom.measure.guard.stream import Guard
from sparkloom.measure.guard.verdict import Verdict
from sparkloom.onnode import sse
from sparkloom.onnode.sse import Channel

KEPT_BODY = 2_000
# Where one kind of text ends and another begins, in the end of the answer that is kept.
HEADS: dict[Channel, str] = {"reasoning": "\n[thinking]\n", "content": "\n[answer]\n", "tool": "\n[tool call]\n"}


class Request:
    """`intended`: when the schedule wanted it to start; `sent`: when its bytes went out; in seconds of one clock."""

    def __init__(self, number: int, prompt: str, body: bytes, intended: float, *, guarded: bool = True) -> None:
        self.number, self.prompt, self.body, self.intended, self.guarded = number, prompt, body, intended, guarded
        self.sent = self.ended = self.connect_s = 0.0
        self.status = self.retried = self.reasoning_chars = 0
        self.error: str | None = None
        self.detail = self.tail = ""
        self.finish: str | None = None
        self.usage: dict[str, Any] | None = None
        self.verdict: Verdict | None = None
        self.calls: list[list[str]] = []  # of each tool call its name, then the pieces of its arguments
        # For every chunk with text: when, how many characters, tokens so far where the engine says it (else -1).
        self.times, self.sizes, self.counted = array("d"), array("l"), array("l")

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
        self._events = sse.Events()
        self._guard = Guard() if request.guarded else None
        self._said: list[str] = []
        self._voice: Channel | None = None
        self._kept = 0
        self._body = b""
        self._shape: Shape | None = None
        self._trust = 4.0  # how many more shapes are worth learning; long stretches that fit earn new ones
        self._alone: Channel | None = None

    def read(self, arrivals: Sequence[bytes], times: Sequence[float]) -> None:
        """Bytes, and when each piece of them arrived. Afterwards `request.over` says whether the request has ended."""
        at = 0
        while at < len(arrivals) and not self.request.over:
            at += self._fitting(arrivals, times, at) or self._parsed(arrivals[at], times[at])

    def _fitting(self, arrivals: Sequence[bytes], times: Sequence[float], start: int) -> int:
        """Takes arrivals that differ from earlier ones in their text alone; how many."""
        shape = self._shape
        if not shape or not self._between:
            return 0
        texts = shape.texts(arrivals, start)
        if texts:
            self._trust = min(4.0, self._trust + len(texts) / 8)
            self._take(texts, shape.channel, times[start : start + len(texts)])
        return len(texts)

    @property
    def _between(self) -> bool:
        """Is the next byte the first of a chunk that begins an event?"""
        return self.response.between and self._events.idle and not self.finished

    def _parsed(self, data: bytes, at: float) -> int:
        """Takes one arrival, whatever it is."""
        whole, before = self._between, len(self.request.times)
        self._alone = None
        self._feed(data, at)
        self._trust += 1 / 64
        if whole and self._trust >= 1 and self._alone and len(self.request.times) == before + 1 and self._between:
            self._trust -= 1
            self._shape = learn(data, self._alone, chunked=self.response.chunked)
        return 1

    def _feed(self, data: bytes, at: float) -> None:
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
        if data == sse.DONE:
            self.finished = True
            return
        read = chunk.read(data)
        request = self.request
        if read.error:
            request.fail("engine-error", read.error, at)
        request.finish = read.finish or request.finish
        if read.usage:
            request.usage = read.usage
        request.calls += [[name] for name in read.calls]
        if not read.texts:
            return
        if len(read.texts) == 1 and not (read.finish or read.usage or read.error):
            ((self._alone, text),) = read.texts
            self._take([text], self._alone, [at])
            return
        for channel, text in read.texts:
            self._hear([text], channel, [at])
        request.times.append(at)
        request.sizes.append(sum(len(text) for _, text in read.texts))
        request.counted.append(_count(read.usage))

    def _take(self, texts: list[str], channel: Channel, times: Sequence[float]) -> None:
        """Chunks of one text each."""
        request = self.request
        request.times.extend(times)
        request.sizes.extend(map(len, texts))
        request.counted.extend([-1] * len(texts))
        self._hear(texts, channel, times)

    def _hear(self, texts: list[str], channel: Channel, times: Sequence[float]) -> None:
        size = sum(map(len, texts))
        if channel == "reasoning":
            self.request.reasoning_chars += size
        if channel == "tool":
            if not self.request.calls:
                self.request.calls.append([""])  # arguments of a call that never said its name
            self.request.calls[-1] += texts
        if channel != self._voice:
            self._said += [HEADS[channel]] if self._voice else []
            self._voice = channel
        self._said.extend(texts)
        self._kept += size
        if self._kept > 8 * TAIL:
            self._said = ["".join(self._said)[-TAIL:]]
            self._kept = TAIL
        if self._guard:
            self._guard.feed_run(texts, channel, times)

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
        elif not self.finished:
            request.fail("cut", f"ended after {len(request.times)} chunks without [DONE]", at)
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
            told = chunk.read(self._body).error
        except chunk.NoChunk:
            told = None
        words = told or " ".join(self._body.decode(errors="replace").split())
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
