"""One start of the engine, watched: its transport, its schedulers, its tokens."""

from __future__ import annotations

import asyncio
import time

from sparkloom.onnode.rank import answers, causes, procs, waits
from sparkloom.onnode.rank.engine import Engine
from sparkloom.onnode.rank.group import RankGroup
from sparkloom.onnode.rank.order import Order
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.onnode.rank.transport import Transport

STEP = 0.5
LAST_LINES = 0.3  # seconds for what other processes of the engine still write


class Watch:
    def __init__(self, order: Order, group: RankGroup, log: StatusLog) -> None:
        self.order, self.group, self.log = order, group, log
        self.transport = Transport(order.rails, len(order.members))
        self.begun = time.monotonic()
        self.stage = "starting"
        self._schedulers: list[procs.Process] = []
        self._token = 0.0  # when the last one came
        self._asked = 0.0
        self._asking: asyncio.Task[str] | None = None
        self._problem = ""
        self._warned = False
        self._settled = False

    def hear(self, line: str) -> None:
        self.log.engine(line)
        self.transport.hear(line)
        self.stage = causes.stage(line, self.order.progress) or self.stage

    async def until_over(self, engine: Engine) -> str:
        """The cause when this rank fails; empty when the group stops for another reason."""
        try:
            while not self.group.stop.is_set():
                if engine.ended.is_set():
                    return await self._why(engine)
                if cause := self._transport() or self._silent() or self._headless(engine) or await self._answer():
                    return cause
                if not self._settled:
                    self.log.progress("engine", f"{self.stage}, {time.monotonic() - self.begun:.0f} s")
                await waits.first(STEP, engine.ended, self.group.stop)
            return ""
        finally:
            if self._asking:
                self._asking.cancel()

    async def _why(self, engine: Engine) -> str:
        await asyncio.sleep(LAST_LINES)
        how = f"the engine {procs.described(engine.code or 0)}"
        named = causes.named(engine.tail, self.order.patterns)
        return f"{how}; {named}" if named else how

    def _transport(self) -> str:
        """Sockets or half the fabric, as soon as NCCL says so; silence once the engine serves."""
        if not self.order.rails or self._warned:
            return ""
        refusal = self.transport.refusal() or (self.transport.final() if self.group.serves else "")
        self.log.status["transport"] = self.transport.summary()
        if refusal and self.order.policy == "warn":
            self._warned = True
            self.log.say("warning", refusal)
            return ""
        return refusal and f"{refusal} (model_serving_transport: refuse)"

    def _headless(self, engine: Engine) -> str:
        """SGLang's server answered 200 for minutes after NCCL had ended its scheduler (sglang#21486)."""
        if self.group.serves and not self._schedulers:
            self._schedulers = procs.titled(engine.pid, self.order.schedulers)
            self.log.status["schedulers"] = [process.pid for process in self._schedulers]
        for process in self._schedulers:
            if not procs.same(process):
                name = process.title.split()[0]
                return f"scheduler process {process.pid} ({name}) is gone while its server still runs"
        return ""

    def _silent(self) -> str:
        if self.log.rank:
            return ""
        budgets, now = self.order.budgets, time.monotonic()
        if not self._token and now - self.begun > budgets.start:
            return f"no token {budgets.start:.0f} s after the start; last seen: {self.stage}"
        if self._token and now - self._token > budgets.silence:
            return f"no token for {budgets.silence:.0f} s although the engine runs"
        return ""

    async def _answer(self) -> str:
        """Rank 0 asks; the others serve when it says so. Never ready without a token."""
        if self.log.rank == 0:
            self._ask()
        if self.group.serves and not self._settled:
            if cause := self._transport():
                return cause
            self._settled = True
            self.log.status["serving"] = True
            seconds = time.monotonic() - self.begun
            self.log.say("serving", f"a token came {seconds:.0f} s after the start; {self.transport.summary()}")
        elif self._settled and self.group.serves != self.log.status["serving"]:
            self.log.status["serving"] = self.group.serves
            text = "tokens come again" if self.group.serves else self._problem or "rank 0 gives no token, or drains"
            self.log.say("serving" if self.group.serves else "quiet", text)
        return ""

    def _ask(self) -> None:
        """One question at a time, in a thread; often until the first token, seldom after it."""
        now, budgets = time.monotonic(), self.order.budgets
        if self._asking and self._asking.done():
            problem = self._asking.result()
            self._asking = None
            if not problem:
                self._token = now
            self._problem = problem if self._token else ""
            self.group.served(not problem or (bool(self._token) and now - self._token < 3 * budgets.token_every))
        pause = budgets.token_every if self._token else min(2.0, budgets.token_every)
        if self._asking is None and now - self._asked > pause:
            self._asked = now
            self._asking = asyncio.ensure_future(asyncio.to_thread(self._question))

    def _question(self) -> str:
        if self._token:
            return answers.again(self.order)
        return answers.streamed(self.order) if answers.listens(self.order) else "its port is closed"
