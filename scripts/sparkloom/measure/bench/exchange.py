"""One request on its way through the loop: its limits, and the reading of what comes.

Arrivals are stamped by the loop and read here later, so that reading one stream never delays the stamp of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sparkloom.measure.bench import shape
from sparkloom.measure.bench.http1 import Garbled, Response
from sparkloom.measure.bench.request import Request
from sparkloom.measure.bench.shape import ENDS, Shape, learn
from sparkloom.measure.guard.batch import TAIL
from sparkloom.measure.guard.stream import Guard
from sparkloom.onnode import sse
from sparkloom.onnode.sse import Channel

AFTER_DONE_S = 2.0  # an engine that has said [DONE] and does not end its body
# Arrivals that look like one more chunk of text are read together: parsing costs less, and no stamp waits for it.
HELD = 32
HELD_S = 0.5
KEPT_BODY = 2_000
# Where one kind of text ends and another begins, in the end of the answer that is kept.
HEADS: dict[Channel, str] = {"reasoning": "\n[thinking]\n", "content": "\n[answer]\n", "tool": "\n[tool call]\n"}


class Limits(NamedTuple):
    first_s: float = 600.0
    stall_s: float = 120.0


class Exchange:
    """One request and its answer; `then` is told when it has ended."""

    def __init__(self, request: Request, limits: Limits, then: Callable[[Request], None]) -> None:
        self.request, self.payload = request, request.body
        self._limits, self._then = limits, then
        self._arrived: list[bytes] = []
        self._times: list[float] = []
        self._response = Response()
        self._finished = False  # [DONE] was seen: what is still to come is no more of it
        self._events = sse.Events()
        self._guard = Guard() if request.guarded else None
        self._said: list[str] = []
        self._voice: Channel | None = None
        self._kept = 0
        self._body = b""
        self._shape: Shape | None = None
        self._trust = 4.0  # how many more shapes are worth learning; long stretches that fit earn new ones
        self._alone: Channel | None = None

    @property
    def over(self) -> bool:
        return self.request.over

    @property
    def reusable(self) -> bool:
        """Whether its connection may carry another one."""
        return self._response.done and self._response.keep_alive and not self._response.left

    def sent(self, now: float, connect_s: float, *, again: bool) -> None:
        self.request.sent, self.request.connect_s = now, connect_s
        self.request.retried += again

    def feed(self, data: bytes, at: float) -> bool:
        """Bytes that arrived at `at`, to be read later; true when they should be read as soon as there is time."""
        self._arrived.append(data)
        self._times.append(at)
        return len(self._times) >= HELD or not data.endswith(ENDS)

    def waits(self, now: float) -> bool:
        """Has something been waiting to be read for too long?"""
        return bool(self._times) and now - self._times[0] >= HELD_S

    def read(self) -> None:
        """All that has arrived. Afterwards `over` says whether the request has ended."""
        arrivals, times = self._arrived, self._times
        self._arrived, self._times = [], []
        at = 0
        while at < len(arrivals) and not self.over:
            at += self._fitting(arrivals, times, at) or self._parsed(arrivals[at], times[at])

    def closed(self, at: float, why: str = "") -> None:
        """The connection has ended."""
        self.read()
        if not self.over:
            self._cut(at, why)

    def expired(self, now: float) -> None:
        """Has it been silent for too long?"""
        if self._times:
            return
        request, times = self.request, self.request.times
        last = times[-1] if times else request.sent
        if self._finished:
            if now - last > AFTER_DONE_S:
                self._cut(last, "")
        elif not times and now - request.sent > self._limits.first_s:
            request.fail("no-token", f"no token within {self._limits.first_s:g} s", now)
        elif times and now - last > self._limits.stall_s:
            request.fail("stall", f"nothing for {self._limits.stall_s:g} s after {len(times)} chunks", now)

    def interrupt(self, now: float) -> None:
        self.read()
        self.request.fail("interrupted", f"stopped after {len(self.request.times)} chunks", now)
        self.judge()

    def ended(self) -> None:
        self.judge()
        self._then(self.request)

    def judge(self) -> None:
        """The guard's verdict, also over a stream that broke off."""
        request = self.request
        request.tail = request.tail or "".join(self._said)[-TAIL:]
        if self._guard and request.verdict is None:
            request.verdict = self._guard.finish(request.usage if request.ok else None)

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
        return self._response.between and self._events.idle and not self._finished

    def _parsed(self, data: bytes, at: float) -> int:
        """Takes one arrival, whatever it is."""
        whole, before = self._between, len(self.request.times)
        self._alone = None
        self._feed(data, at)
        self._trust += 1 / 64
        if whole and self._trust >= 1 and self._alone and len(self.request.times) == before + 1 and self._between:
            self._trust -= 1
            self._shape = learn(data, self._alone, chunked=self._response.chunked)
        return 1

    def _feed(self, data: bytes, at: float) -> None:
        try:
            pieces = self._response.feed(data)
            if self._response.status == 200:
                for piece in pieces:
                    for event in self._events.feed(piece):
                        self._event(event, at)
            elif self._response.status:
                self._body = (self._body + b"".join(pieces))[:KEPT_BODY]
        except (Garbled, shape.NoChunk, ValueError) as error:
            self.request.fail("garbled", str(error), at)
            return
        if self._response.done:
            self._complete(at)

    def _cut(self, at: float, why: str) -> None:
        """No more will come."""
        if self._response.close():
            self._complete(at)
        elif self._finished:
            self._end(at)
        elif not self._response.status:
            self.request.fail("cut", why or "closed without an answer", at)
        else:
            self.request.fail("cut", f"{why or 'closed'} after {len(self.request.times)} chunks", at)

    def _event(self, data: bytes, at: float) -> None:
        if data == sse.DONE:
            self._finished = True
            return
        read = shape.read(data)
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
            self._hear([text], channel)
        request.times.append(at)
        request.sizes.append(sum(len(text) for _, text in read.texts))
        request.counted.append(_count(read.usage))

    def _take(self, texts: list[str], channel: Channel, times: Sequence[float]) -> None:
        """Chunks of one text each."""
        request = self.request
        request.times.extend(times)
        request.sizes.extend(map(len, texts))
        request.counted.extend([-1] * len(texts))
        self._hear(texts, channel)

    def _hear(self, texts: list[str], channel: Channel) -> None:
        size = sum(map(len, texts))
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
            self._guard.feed_run(texts, channel)

    def _complete(self, at: float) -> None:
        """The body is whole."""
        request = self.request
        if request.over:
            return
        if self._response.status != 200:
            request.fail(f"http-{self._response.status}", self._words(), at)
            return
        for event in self._events.finish():
            try:
                self._event(event, at)
            except shape.NoChunk as error:
                request.fail("garbled", str(error), at)
        kind = self._response.headers.get("content-type", "")
        if not request.times and not kind.startswith("text/event-stream"):
            request.fail("no-stream", f"the answer is {kind or 'of no type'}, not text/event-stream", at)
        elif not self._finished:
            request.fail("cut", f"ended after {len(request.times)} chunks without [DONE]", at)
        else:
            self._end(at)

    def _end(self, at: float) -> None:
        request = self.request
        if not request.times:
            request.fail("empty", "the stream ended without a single token", at)
        request.ended = request.ended or at
        request.tail = "".join(self._said)[-TAIL:]

    def _words(self) -> str:
        where = self._response.headers.get("location")
        later = self._response.headers.get("retry-after")
        try:
            told = shape.read(self._body).error
        except shape.NoChunk:
            told = None
        words = told or " ".join(self._body.decode(errors="replace").split())
        return words[:240] + (f"; Location: {where}" if where else "") + (f"; Retry-After: {later}" if later else "")


def _count(usage: dict[str, Any] | None) -> int:
    """Tokens so far, where the engine says so with every chunk; -1 else."""
    tokens = (usage or {}).get("completion_tokens")
    return tokens if isinstance(tokens, int) else -1
