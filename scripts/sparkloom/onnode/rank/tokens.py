"""Rank 0 and its engine: the first token, and from then on whether it still moves."""

from __future__ import annotations

import asyncio
import time

from sparkloom.onnode.rank import answers, procs
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.progress import Progress

FIRST_EVERY = 2.0


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
