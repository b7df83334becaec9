"""One request on its way through the loop: its limits, and what its end means for the connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sparkloom.measure.bench.request import Reader, Request
from sparkloom.measure.bench.shape import ENDS

AFTER_DONE_S = 2.0  # an engine that has said [DONE] and does not end its body
# Arrivals that look like one more chunk of text are read together: parsing costs less, and no stamp waits for it.
HELD = 32
HELD_S = 0.5


class Limits(NamedTuple):
    first_s: float = 600.0
    stall_s: float = 120.0


class Ask:
    """An exchange of the loop."""

    def __init__(self, request: Request, limits: Limits, then: Callable[[Request], None]) -> None:
        self.request, self.payload = request, request.body
        self._limits, self._then = limits, then
        self._reader = Reader(request)
        self._arrived: list[bytes] = []
        self._times: list[float] = []

    @property
    def over(self) -> bool:
        return self.request.over

    @property
    def reusable(self) -> bool:
        response = self._reader.response
        return response.done and response.keep_alive and not response.left

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
        arrived, times = self._arrived, self._times
        self._arrived, self._times = [], []
        self._reader.read(arrived, times)

    def closed(self, at: float, why: str) -> None:
        self.read()
        self._reader.closed(at, why)

    def lost(self, kind: str, detail: str, at: float) -> None:
        self.request.fail(kind, detail, at)

    def expired(self, now: float) -> None:
        """Has it been silent for too long?"""
        if self._times:
            return
        request, times = self.request, self.request.times
        last = times[-1] if times else request.sent
        if self._reader.finished:
            if now - last > AFTER_DONE_S:
                self._reader.closed(last)
        elif not times and now - request.sent > self._limits.first_s:
            request.fail("no-token", f"no token within {self._limits.first_s:g} s", now)
        elif times and now - last > self._limits.stall_s:
            request.fail("stall", f"nothing for {self._limits.stall_s:g} s after {len(times)} chunks", now)

    def ended(self) -> None:
        self._reader.judge()
        self._then(self.request)

    def interrupt(self, now: float) -> None:
        self.read()
        self.request.fail("interrupted", f"stopped after {len(self.request.times)} chunks", now)
        self._reader.judge()
