"""Does the engine move? By its own counters, its log, what it compiles, and only when it is idle by a question.

A question of ours waits behind others in a busy engine: vLLM and TensorRT-LLM were started anew after 300 s for that,
while one prefill takes 500 s. An engine is dead when requests run and nothing of all this changes any more.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable

from sparkloom.onnode.prometheus import samples
from sparkloom.onnode.rank.plan import GroupPlan

LOOKS = 3  # so many in vain before silence counts: a supervisor that did not run has seen nothing
ITERATIONS = ("iter", "numActiveRequests", "numQueuedRequests")  # TensorRT-LLM's page is a list of such


class Progress:
    def __init__(self, plan: GroupPlan, clock: Callable[[], float] = time.monotonic) -> None:
        self.plan, self.clock = plan, clock
        self.at, self.by = clock(), "the start"
        self.requests: float | None = None  # running and waiting; None: the engine does not tell
        self.looks = 0  # in a row that saw nothing
        self.mute = False  # it told once, and gives no page any more
        self._clients = self.at - plan.limits.silence  # when somebody was last seen to wait for what cannot be seen
        self._moves: tuple[float, ...] | None = None
        self._patterns = [re.compile(pattern) for pattern in plan.works]

    def note(self, by: str, at: float | None = None) -> None:
        self.at, self.by, self.looks = at or self.clock(), by, 0

    def hear(self, line: str) -> None:
        if any(pattern.search(line) for pattern in self._patterns):
            self.note("its log")

    def page(self, text: str | None) -> None:
        """One look at its counters; None when it gave no page."""
        self.looks += 1
        seen = numbers(text or "", self.plan.requests, self.plan.moves)
        self.mute = text is None and self._moves is not None
        if seen is None:
            self.requests = None
            return
        self.requests, moves = seen
        if moves and self._moves is not None and moves != self._moves:
            self.note("its counters")
        self._moves = moves or self._moves

    @property
    def idle(self) -> bool | None:
        return None if self.requests is None else self.requests == 0

    def silent(self, connections: Callable[[], int]) -> float:
        """For how many seconds nothing moved, once that is too long; else 0.

        Without counters, clients that are connected may wait for work that cannot be seen. An engine that had counters
        and gives no page now is not one of those: llama.cpp answers for them in the thread that computes.
        """
        now, limits = self.clock(), self.plan.limits
        quiet = now - self.at
        if quiet <= limits.silence or self.looks < LOOKS:
            return 0.0
        if self.requests is None and not self.mute and quiet <= limits.blind and connections() > 0:
            self._clients = now
        return quiet if now - self._clients > limits.silence else 0.0


def numbers(text: str, requests: Iterable[str], moves: Iterable[str]) -> tuple[float, tuple[float, ...]] | None:
    """How many requests there are, and everything that moves; None where the page tells neither."""
    if text.startswith("["):
        return _iterations(text)
    wanted = {*requests, *moves}
    found: dict[str, float] = {}
    for sample in samples(text, wanted):
        found[sample.name] = found.get(sample.name, 0.0) + sample.value
    if not any(name in found for name in requests):
        return None
    return sum(found.get(name, 0.0) for name in requests), tuple(found.get(name, 0.0) for name in moves)


def _iterations(text: str) -> tuple[float, tuple[float, ...]] | None:
    """TensorRT-LLM gives what happened since somebody last asked: an empty list says nothing about requests."""
    try:
        last = json.loads(text)[-1]
        number, active, queued = (float(last.get(name) or 0) for name in ITERATIONS)
    except (ValueError, IndexError, AttributeError, TypeError):
        return None
    return active + queued, (number,)
