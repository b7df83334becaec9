"""When requests start. Closed: so many at a time, the next when one ends. Open: at seeded random moments, whatever
the server does; a request that had to wait is measured from the moment at which it should have started."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from itertools import accumulate

from sparkloom.measure.bench.exchange import Exchange, Limits
from sparkloom.measure.bench.loop import Loop
from sparkloom.measure.bench.request import Request

Make = Callable[[int, float], Request]  # number, intended start


class Schedule:
    """The requests of one level, started and ended by a loop."""

    def __init__(self, loop: Loop, make: Make, limits: Limits, total: int, stop: Callable[[], bool]) -> None:
        self.loop, self.make, self.limits, self.total, self.stop = loop, make, limits, total, stop
        self.requests: list[Request] = []
        self.running = self.most = self.ended = 0
        self._waiting: deque[Request] = deque()
        self._after: Callable[[], None] = lambda: None

    @property
    def cut(self) -> bool:
        """Not all of it came to its own end."""
        return len(self.requests) < self.total or any(request.error == "interrupted" for request in self.requests)

    def closed(self, streams: int) -> None:
        """`streams` at a time until all have ended. Connections are there before the first request is sent."""
        self.loop.open(min(streams, self.total))
        for _ in range(min(streams, self.total)):
            self._next()
        self._finish(self._next)

    def open(self, rate: float, seed: int, most: int) -> None:
        """`rate` a second on average; above `most` at a time they wait, and the wait counts."""
        begin = self.loop.now() + 0.05

        def due() -> None:
            self._waiting.append(self._made(begin + offsets[len(self.requests)]))
            room()

        def room() -> None:
            while self._waiting and self.running < most:
                self._start(self._waiting.popleft())

        offsets = list(arrivals(rate, seed, self.total))
        for offset in offsets:
            self.loop.at(begin + offset, due)
        self._finish(room)

    def _finish(self, after: Callable[[], None]) -> None:
        self._after = after
        self.loop.run(lambda: self.ended >= self.total or self.stop())
        if self.stop():
            self._interrupt()

    def _next(self) -> None:
        if len(self.requests) < self.total:
            self._start(self._made(self.loop.now()))

    def _made(self, intended: float) -> Request:
        request = self.make(len(self.requests), intended)
        self.requests.append(request)
        return request

    def _start(self, request: Request) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        self.loop.submit(Exchange(request, self.limits, self._over))

    def _over(self, request: Request) -> None:
        self.running -= 1
        self.ended += 1
        if not self.stop():
            self._after()

    def _interrupt(self) -> None:
        now = self.loop.now()
        for exchange in self.loop.busy():
            exchange.interrupt(now)
        self.loop.drop_busy()
        for request in self.requests:
            request.fail("interrupted", "not started yet", now)


def arrivals(rate: float, seed: int, count: int) -> Iterator[float]:
    """Seconds after the beginning: a Poisson process, the same for the same seed."""
    chance = random.Random(seed)
    return accumulate(chance.expovariate(rate) for _ in range(count))
