"""Rank 0 and its engine: the first token, and from then on whether it still moves."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from sparkloom.onnode.rank import answers, procs
from sparkloom.onnode.rank.order import Order
from sparkloom.onnode.rank.progress import Progress, numbers

FIRST_EVERY = 2.0


class Look(NamedTuple):
    page: str | None = None  # the engine's counters
    problem: str | None = None  # with a question; None when none was asked


class Tokens:
    def __init__(self, order: Order) -> None:
        self.order, self.progress = order, Progress(order)
        self.first = False  # a token came
        self.problem = ""  # of the last question
        self._looked = self._asked = 0.0
        self._looking: asyncio.Task[Look] | None = None

    def step(self) -> None:
        """One look at a time, in a thread: often until the first token, seldom after it."""
        now = time.monotonic()
        if self._looking and self._looking.done():
            self._take(self._looking.result())
            self._looking = None
        pause = self.order.budgets.look if self.first else min(FIRST_EVERY, self.order.budgets.look)
        if self._looking is None and now - self._looked > pause:
            self._looked = now
            self._looking = asyncio.ensure_future(asyncio.to_thread(self._look, now))

    def stop(self) -> None:
        if self._looking:
            self._looking.cancel()

    @property
    def served(self) -> bool:
        """It gave a token and has moved since; an engine that only computes a long prompt has."""
        return self.first and time.monotonic() - self.progress.at < 3 * self.order.budgets.token_every

    def silent(self) -> str:
        """Why the engine counts as dead, when it does."""
        if not self.first or not (quiet := self.progress.silent(self._others)):
            return ""
        known = self.progress.requests
        doing = "it does not tell what it does" if known is None else f"{known:.0f} requests run or wait"
        return f"no progress for {quiet:.0f} s although the engine runs ({doing}; the last was {self.progress.by})"

    def _look(self, now: float) -> Look:
        """A question only to an engine that has nothing else to do: it would wait behind what that does."""
        order = self.order
        if not self.first:
            return Look(problem=answers.streamed(order) if answers.listens(order) else "its port is closed")
        page = answers.page(order) if order.metrics else None
        seen = numbers(page or "", order.requests, order.moves)
        if (seen and seen[0] > 0) or now - self._asked <= order.budgets.token_every:
            return Look(page)
        self._asked = now
        return Look(page, answers.again(order))

    def _take(self, look: Look) -> None:
        if self.first:
            self.progress.page(look.page)
        if look.problem == "":
            self.first = True
            self._asked = self._looked
            self.progress.note("a token")
        if look.problem is not None:
            self.problem = look.problem if self.first else ""

    def _others(self) -> int:
        """Connections of clients: less the one of a question that waits."""
        return max(0, procs.connections(self.order.port) - bool(self._looking))
