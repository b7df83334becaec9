"""Rank 0 and its engine: the first token, and from then on whether it still moves.

By its own counters, its log, what it compiles, and only when it is idle by a question. A question of ours waits behind
others in a busy engine: vLLM and TensorRT-LLM were started anew after 300 s for that, while one prefill takes 500 s. An
engine is dead when requests run and nothing of all this changes any more.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable

from sparkloom.onnode.prometheus import samples
from sparkloom.onnode.rank import answers, procs
from sparkloom.onnode.rank.plan import GroupPlan

FIRST_EVERY = 2.0
LOOKS = 3  # so many in vain before silence counts: a supervisor that did not run has seen nothing
ITERATIONS = ("iter", "numActiveRequests", "numQueuedRequests")  # TensorRT-LLM's page is a list of such


class Tokens:
    """A look at its counters and a question, each in a thread of its own: a question may wait for a minute."""

    def __init__(self, plan: GroupPlan) -> None:
        self.plan, self.progress = plan, Progress(plan)
        self.first = False  # a token came
        self.problem = ""  # of the last question
        self._looked = self._asked = 0.0
        self._looking: asyncio.Task[str | None] | None = None
        self._asking: asyncio.Task[str] | None = None

    def step(self) -> None:
        now, limits = time.monotonic(), self.plan.limits
        if self._asking and self._asking.done():
            problem, self._asking = self._asking.result(), None
            self._answered(problem)
        if self._looking and self._looking.done():
            page, self._looking = self._looking.result(), None
            self.progress.page(page)
        if self.first and self._looking is None and now - self._looked > limits.look:
            self._looked = now
            self._looking = asyncio.ensure_future(asyncio.to_thread(self._page))
        if self._asking is None and self._due(now):
            self._asked = now
            self._asking = asyncio.ensure_future(asyncio.to_thread(self._question))

    def stop(self) -> None:
        for task in (self._looking, self._asking):
            if task:
                task.cancel()

    @property
    def served(self) -> bool:
        """It gave a token and has moved since; an engine that only computes a long prompt has."""
        return self.first and time.monotonic() - self.progress.at < 3 * self.plan.limits.token_every

    def silent(self) -> str:
        """Why the engine counts as dead, when it does."""
        if not self.first or not (quiet := self.progress.silent(self._others)):
            return ""
        known = self.progress.requests
        doing = "it does not tell what it does" if known is None else f"{known:.0f} requests run or wait"
        return f"no progress for {quiet:.0f} s although the engine runs ({doing}; the last was {self.progress.by})"

    def _due(self, now: float) -> bool:
        """Often until the first token; then only an engine that has nothing else to do, or does not tell."""
        if not self.first:
            return now - self._asked > min(FIRST_EVERY, self.plan.limits.token_every)
        return not self.progress.requests and now - self._asked > self.plan.limits.token_every

    def _page(self) -> str | None:
        return answers.page(self.plan) if self.plan.metrics else None

    def _question(self) -> str:
        if self.first:
            return answers.again(self.plan)
        return answers.streamed(self.plan) if answers.listens("127.0.0.1", self.plan.port) else "its port is closed"

    def _answered(self, problem: str) -> None:
        if not problem:
            self.first = True
            self.progress.note("a token")
        self.problem = problem if self.first else ""

    def _others(self) -> int:
        """Connections of clients: less our own, of a question and of a look that wait."""
        return max(0, procs.connections(self.plan.port) - bool(self._asking) - bool(self._looking))


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
    except (ValueError, IndexError, AttributeError, TypeError, OverflowError):
        return None
    return active + queued, (number,)
