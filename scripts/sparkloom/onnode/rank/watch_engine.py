"""One start of the engine, watched: its transport, its schedulers, its tokens.

Of some engines the other ranks only lend their memory, as rpc-server does: llama-server that comes before an rpc-server
ends within a second. So rank 0 first waits until each of them listens, over the same rail that the engine will take.
"""

from __future__ import annotations

import asyncio
import time

from sparkloom.onnode.rank import answers, causes, memory, procs, waits
from sparkloom.onnode.rank.budget import PROVED
from sparkloom.onnode.rank.engine import Engine
from sparkloom.onnode.rank.group import RankGroup
from sparkloom.onnode.rank.kernels import Kernels
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.onnode.rank.tokens import Tokens
from sparkloom.onnode.rank.transport import Transport

STEP = 0.5
LATE = 5.0  # seconds for what NCCL said before the first token and a busy machine has not handed on yet
LAST_LINES = 0.3  # seconds for what other processes of the engine still write
COLD = (
    "the first start of this image on this node: its kernels are compiled and kept, which took up to 36 min elsewhere"
)
EVERY = 1.0
MOMENT = 0.05  # seconds until the end of a process is collected: a kill may come with the group's stop


class Watch:
    def __init__(self, plan: GroupPlan, group: RankGroup, log: StatusLog) -> None:
        self.plan, self.group, self.log = plan, group, log
        self.transport = Transport(plan.rails, len(plan.members), plan.nccl)
        self.begun, self.begun_at = time.monotonic(), time.time()
        self.stage = "starting"
        self.tokens = Tokens(plan)
        self.kernels = Kernels(plan.cache)
        self.compiling = ""
        self._schedulers: list[procs.Process] = []
        self._compiled = self.begun
        self._looking: asyncio.Task[str] | None = None
        self._agreed = False
        self._warned = False
        self._answered_since = 0.0
        self._settled = False
        self._served_since = 0.0

    def hear(self, line: str) -> None:
        self.log.engine(line)
        self.transport.hear(line)
        self.tokens.progress.hear(line)
        self.stage = causes.stage(line, self.plan.progress) or self.stage

    async def until_over(self, engine: Engine) -> str:
        """The cause when this rank's engine fails, also where the group's stop came as it did; else empty."""
        if self.kernels.cold:
            self.log.note("engine", COLD)
        try:
            while not self.group.stop.is_set():
                self._kernels()
                if engine.ended.is_set():
                    break
                if gone := self._headless(engine):
                    return await self._why(engine, gone)
                if cause := self._transport() or self._silent():
                    return cause
                self._answer()
                if not self._settled:
                    doing = f"{self.stage}; {self.compiling}" if self.compiling else self.stage
                    self.log.progress("engine", f"{doing}, {time.monotonic() - self.begun:.0f} s")
                await waits.first(STEP, engine.ended, self.group.stop)
            return await self._why(engine) if await waits.first(MOMENT, engine.ended) else ""
        finally:
            self.tokens.stop()
            if self._looking:
                self._looking.cancel()

    async def _why(self, engine: Engine, how: str = "") -> str:
        await asyncio.sleep(LAST_LINES)
        if guarded := memory.guarded(self.plan, self.begun_at):
            return f"the engine {guarded}"  # which its own lines know nothing of
        how = how or f"the engine {procs.described(engine.code or 0, engine.tail)}"
        named = causes.named(engine.tail, self.plan.patterns)
        return f"{how}; {named}" if named else how

    def _transport(self) -> str:
        """Sockets or half the fabric, as soon as NCCL says so; silence once the engine serves."""
        if not self.plan.rails or self._warned:
            return ""
        refusal = self.transport.refusal() or (self.transport.final() if self._must_be_known() else "")
        self.log.status["transport"] = self.transport.summary()
        if refusal and self.plan.policy == "warn":
            self._warned = True
            self.log.say("warning", refusal)
            return ""
        return refusal and f"{refusal} (model_serving_transport: refuse)"

    def _must_be_known(self) -> bool:
        """Tokens come, so NCCL has said which way it took; its words may be on their way still."""
        if not self.group.answers:
            return False
        self._answered_since = self._answered_since or time.monotonic()
        return self._agreed or time.monotonic() - self._answered_since > LATE

    def _agree(self) -> None:
        """Nobody serves before each rank has seen its own way, or was told to live with another one."""
        if self.group.answers and not self._agreed and (self._warned or not self.transport.final()):
            self._agreed = True
            self.group.agree()

    def _headless(self, engine: Engine) -> str:
        """SGLang's server answered 200 for minutes after NCCL had ended its scheduler (sglang#21486)."""
        if self.group.serves and not self._schedulers:
            self._schedulers = procs.titled(engine.pid, self.plan.schedulers)
            self.log.status["schedulers"] = [process.pid for process in self._schedulers]
        for process in self._schedulers:
            if not procs.same(process):
                name = process.title.split()[0]
                return f"scheduler process {process.pid} ({name}) is gone while its server still runs"
        return ""

    def _kernels(self) -> None:
        """What is compiled here or on another rank is progress, for as long as it goes on."""
        now, progress = time.monotonic(), self.tokens.progress
        if self._looking and self._looking.done():
            self.compiling, self._looking = self._looking.result(), None
            self.log.status["compiling"] = bool(self.compiling)
            if self.compiling:
                progress.note("a compiler")
                self.group.works(self.compiling)
        if self._looking is None and now - self._compiled > self.plan.limits.look:
            self._compiled = now
            self._looking = asyncio.ensure_future(asyncio.to_thread(self.kernels.look))
        if self.group.worked > progress.at:
            progress.note("a compiler of another rank", self.group.worked)

    def _silent(self) -> str:
        """Before the first token a budget, which a compiler may double; after it progress."""
        if self.log.rank or self.tokens.first:
            return "" if self.log.rank else self.tokens.silent()
        limits, now = self.plan.limits, time.monotonic()
        compiles = now - self.tokens.progress.at < limits.silence and now - self.begun < 2 * limits.start
        if now - self.begun > limits.start and not compiles:
            return f"no token {now - self.begun:.0f} s after the start; last seen: {self.stage}"
        return ""

    def _answer(self) -> None:
        """Rank 0 asks; the others serve when it says so. Never ready without a token."""
        if self.log.rank == 0:
            self.tokens.step()
            self._tell()
            self.group.served(self.tokens.served)
            if self._served_since and self.group.serves and time.monotonic() - self._served_since > PROVED:
                self._served_since = 0.0
                self.group.proved()
        self._agree()
        if self.group.serves and not self._settled:
            self._settled = True
            self._served_since = time.monotonic()
            seconds = time.monotonic() - self.begun
            self.log.status |= {"serving": True, "took": round(seconds, 1)}
            told = (f"a token came {seconds:.0f} s after the start", self.transport.summary())
            self.log.say("serving", "; ".join(filter(None, told)))
        elif self._settled and self.group.serves != self.log.status["serving"]:
            self.log.status["serving"] = self.group.serves
            text = (
                "tokens come again" if self.group.serves else self.tokens.problem or "rank 0 gives no token, or drains"
            )
            self.log.say("serving" if self.group.serves else "quiet", text)

    def _tell(self) -> None:
        """For whoever asks how the engine is: on the wall's clock, and only once it gave a token."""
        if self.tokens.first:
            progress = self.tokens.progress
            moved = time.time() - (time.monotonic() - progress.at)
            self.log.status |= {"moved": round(moved, 1), "requests": progress.requests}


async def missing(plan: GroupPlan, group: RankGroup, log: StatusLog, *leaving: asyncio.Event) -> str:
    """Why rank 0's engine cannot start; empty once all listen, or when the group stops anyhow."""
    if log.rank or not plan.lends:
        return ""
    begun = time.monotonic()
    for member in plan.members[1:]:
        where = f"{member.address}:{plan.lends}"
        while not await asyncio.to_thread(answers.listens, member.address, plan.lends):
            if group.stop.is_set() or any(event.is_set() for event in leaving):
                return ""
            if time.monotonic() - begun > plan.limits.lend:
                return f"{member} did not listen at {where} in {plan.limits.lend:.0f} s; its own log says why"
            log.progress("lenders", f"{member} does not listen yet at {where}")
            await waits.first(EVERY, group.stop, *leaving)
    return ""
