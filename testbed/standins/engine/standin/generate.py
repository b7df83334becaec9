"""One request after another through the pretended model: queue, pace, rubbish when told so, and honest counters."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from standin import text
from standin.conduct import Conduct
from standin.metrics import Meter
from standin.pace import Pace
from standin.web import ClientLeft

Piece = tuple[str, str]  # channel, text
MEETS = 0.2  # seconds between two steps in which the other ranks are asked: each would be a burden on two cores


class RequestFailed(Exception):
    """The engine answers this request with an error and lives on."""


@dataclass
class Job:
    pieces: list[Piece]
    prompt_tokens: int
    seed: str
    left: Callable[[], bool]  # whether the client has gone
    id: str = ""
    finish: str = "stop"
    tokens: int = 0
    aborted: bool = False


@dataclass
class Model:
    pace: Pace
    conduct: Conduct
    limit: int
    tell: Callable[[dict[str, int]], None] = lambda _: None
    together: Callable[[], Awaitable[None]] | None = None  # all ranks take part in a step, where there are several
    meter: Meter = field(default_factory=Meter)
    jobs: dict[str, Job] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.limit)
        self.begun = 0
        self.met = 0.0

    async def run(self, job: Job) -> AsyncGenerator[list[Piece], None]:
        """The job's pieces, a step at a time; whoever stops listening frees the slot."""
        born = time.monotonic()
        self.meter.queued += 1
        try:
            await self.slots.acquire()
        finally:
            self.meter.queued -= 1
        self.meter.running += 1
        self.jobs[job.id] = job
        try:
            self._begin()
            await self._alive(job)
            async for step in self._steps(job, born):
                yield step
            self.meter.finished(job.finish, job.tokens, time.monotonic() - born)
        except (ClientLeft, GeneratorExit):
            job.finish = "abort"
            raise
        finally:
            self.meter.aborted += job.finish == "abort"
            self.jobs.pop(job.id, None)
            self.meter.running -= 1
            self.slots.release()

    async def _alive(self, job: Job) -> None:
        """Nothing comes while the scheduler is dead; who waits may leave."""
        while self.conduct.find("dead"):
            if job.left():
                raise ClientLeft("the client left")
            await asyncio.sleep(0.2)

    async def meets(self, seconds: float) -> bool:
        """Whether all ranks take part in a step within this time."""
        try:
            await asyncio.wait_for(self._meet(), seconds)
        except TimeoutError:
            return False
        return True

    async def _meet(self) -> None:
        if self.together:
            await self.together()
        self.met = time.monotonic()

    def _begin(self) -> None:
        self.begun += 1
        self.tell({"begun": self.begun, "running": self.meter.running})
        self.conduct.note(self.begun, self.meter.running)
        failing = self.conduct.find("errors", running=self.meter.running)
        if failing:
            raise RequestFailed(failing.text or "RuntimeError: asked to fail each request")

    async def _steps(self, job: Job, born: float) -> AsyncIterator[list[Piece]]:
        await self._meet()
        source, waiting = random.Random(job.seed), self._spoilt(job)
        due = time.monotonic() + self.pace.prefill(job.prompt_tokens)
        before = 0.0
        pending = next(waiting, None)
        while pending is not None and not job.aborted:
            step = []
            for _ in range(self.pace.burst(source)):
                if pending is not None:
                    step.append(pending)
                    pending = next(waiting, None)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if time.monotonic() > self.met + MEETS:
                await self._meet()
            if job.left():
                raise ClientLeft("the client left")
            now = time.monotonic()
            self.meter.prompt += 0 if job.tokens else job.prompt_tokens
            self.meter.step(len(step), now - born if not job.tokens else 0.0, now - before if before else 0.0)
            before = now
            job.tokens += len(step)
            yield step
            due = max(due, now - 1) + self.pace.accept / self.pace.rate(self.meter.running)
        if job.aborted:
            job.finish = "abort"

    def _spoilt(self, job: Job) -> Iterator[Piece]:
        """The job's pieces, until a trouble turns them into rubbish that only ends at the limit."""
        for place, (channel, piece) in enumerate(job.pieces):
            bad = self.conduct.find("garbage", running=self.meter.running)
            if bad and place >= bad.after:
                rubbish = text.garbage(bad.form, job.seed)
                job.finish = "length"
                for channel, _ in job.pieces[place:]:
                    yield channel, next(rubbish)
                return
            yield channel, piece
