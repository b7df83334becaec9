"""One start of the engine, watched: its transport, its schedulers, its tokens."""

from __future__ import annotations

import asyncio
import time

from sparkloom.onnode.rank import answers, causes, procs, waits
from sparkloom.onnode.rank.engine import Engine
from sparkloom.onnode.rank.group import Group
from sparkloom.onnode.rank.order import Plan
from sparkloom.onnode.rank.status_log import Voice
from sparkloom.onnode.rank.transport import Transport

STEP = 0.5
LAST_LINES = 0.3  # seconds for what other processes of the engine still write


class Watch:
    def __init__(self, plan: Plan, group: Group, voice: Voice) -> None:
        self.plan, self.group, self.voice = plan, group, voice
        self.transport = Transport(plan.rails, len(plan.members))
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
        self.voice.engine(line)
        self.transport.hear(line)
        self.stage = causes.stage(line) or self.stage

    async def until_over(self, engine: Engine) -> str:
        """The cause when this rank fails; empty when the group stops for another reason."""
        try:
            while not self.group.stop.is_set():
                if engine.ended.is_set():
                    return await self._why(engine)
                if cause := self._transport() or self._silent() or self._headless(engine) or await self._answer():
                    return cause
                if not self._settled:
                    self.voice.progress("engine", f"{self.stage}, {time.monotonic() - self.begun:.0f} s")
                await waits.first(STEP, engine.ended, self.group.stop)
            return ""
        finally:
            if self._asking:
                self._asking.cancel()

    async def _why(self, engine: Engine) -> str:
        await asyncio.sleep(LAST_LINES)
        how = f"the engine {procs.described(engine.code or 0)}"
        named = causes.named(engine.tail, self.plan.patterns)
        return f"{how}; {named}" if named else how

    def _transport(self) -> str:
        """Sockets or half the fabric, as soon as NCCL says so; silence once the engine serves."""
        if not self.plan.rails or self._warned:
            return ""
        found = self.transport.refusal() or (self.transport.final() if self.group.serves else "")
        self.voice.status["transport"] = self.transport.summary()
        if found and self.plan.policy == "warn":
            self._warned = True
            self.voice.say("warning", found)
            return ""
        return found and f"{found} (model_serving_transport: refuse)"

    def _headless(self, engine: Engine) -> str:
        """SGLang's server answered 200 for minutes after NCCL had ended its scheduler (sglang#21486)."""
        if self.group.serves and not self._schedulers:
            self._schedulers = procs.titled(engine.pid, self.plan.schedulers)
            self.voice.status["schedulers"] = [process.pid for process in self._schedulers]
        for process in self._schedulers:
            if not procs.same(process):
                name = process.title.split()[0]
                return f"scheduler process {process.pid} ({name}) is gone while its server still runs"
        return ""

    def _silent(self) -> str:
        if self.voice.rank:
            return ""
        budgets, now = self.plan.budgets, time.monotonic()
        if not self._token and now - self.begun > budgets.start:
            return f"no token {budgets.start:.0f} s after the start; last seen: {self.stage}"
        if self._token and now - self._token > budgets.silence:
            return f"no token for {budgets.silence:.0f} s although the engine runs"
        return ""

    async def _answer(self) -> str:
        """Rank 0 asks; the others serve when it says so. Never ready without a token."""
        if self.voice.rank == 0:
            self._ask()
        if self.group.serves and not self._settled:
            if cause := self._transport():
                return cause
            self._settled = True
            self.voice.status["serving"] = True
            seconds = time.monotonic() - self.begun
            self.voice.say("serving", f"a token came {seconds:.0f} s after the start; {self.transport.summary()}")
        elif self._settled and self.group.serves != self.voice.status["serving"]:
            self.voice.status["serving"] = self.group.serves
            text = "tokens come again" if self.group.serves else self._problem or "rank 0 gives no token, or drains"
            self.voice.say("serving" if self.group.serves else "quiet", text)
        return ""

    def _ask(self) -> None:
        """One question at a time, in a thread; often until the first token, seldom after it."""
        now, budgets = time.monotonic(), self.plan.budgets
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
            return answers.again(self.plan)
        return answers.streamed(self.plan) if answers.listens(self.plan) else "its port is closed"
