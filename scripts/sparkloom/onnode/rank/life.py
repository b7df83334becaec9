"""The life of one rank: check, meet, run, stop; again with the whole group, until told to go."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import time
from collections.abc import Sequence

from sparkloom.onnode.host import gpu
from sparkloom.onnode.rank import causes, kernels, modules, patching, path, procs, proof, rails, waits, watch_engine
from sparkloom.onnode.rank.engine import Engine, found
from sparkloom.onnode.rank.follower import Follower
from sparkloom.onnode.rank.group import Identity, RankGroup
from sparkloom.onnode.rank.head import Head
from sparkloom.onnode.rank.memory import Memory
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import STOPPING, StatusLog
from sparkloom.onnode.rank.watch_engine import Watch
from sparkloom.onnode.weights import check

# What an engine says when another rank went first.
FOLLOWED = re.compile(
    r"ncclRemoteError|remote process exited|Connection (?:closed|reset|was likely closed)|Broken pipe|EOFError"
    r"|DistNetworkError|socket has timed out|Remote RPC server"
)
EVERY = 2.0
WEIGH_EVERY = 600.0  # a look at sizes and times of the weights' files
TOLD = 2.0  # seconds for the word to go that the engine may have heard first


class Life:
    def __init__(
        self, plan: GroupPlan, me: Identity, words: Sequence[str], environment: dict[str, str], log: StatusLog
    ) -> None:
        self.plan, self.me, self.words, self.environment = plan, me, list(words), environment
        self.log = log
        self.group: RankGroup = (Follower if me.rank else Head)(plan, me, self.log)
        self.leaving = asyncio.Event()
        self.engine: Engine | None = None
        self.echoes: dict[str, path.Echo] = {}
        self.memory = Memory(plan)

    async def live(self) -> int:
        loop = asyncio.get_running_loop()
        procs.adopt()
        loop.add_signal_handler(signal.SIGCHLD, self._collect)
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._go)
        always = [loop.create_task(work) for work in (self._heart(), self._look(), self._weigh())]
        # Before anything of the engine runs: afterwards its cache is its own again.
        if text := await asyncio.to_thread(kernels.lay_out, self.plan):
            self.log.say("kernels", text)
        await self._image()
        while not self.leaving.is_set():
            await self._check()
            if not self.leaving.is_set():
                await self._join()
                await self._meet()
            if self.group.start.is_set() and not self.leaving.is_set():
                await self._run()
        for task in always:
            task.cancel()
        self.log.status["serving"] = False
        self.log.say("gone", "told to go; nothing of this rank is left")
        return 0

    async def _image(self) -> None:
        """All that the profile needs of its image, before anything else; what is not there is named, nothing starts."""
        try:
            self.environment |= patching.apply(self.plan, self.environment, self.log.say)
            refusal = await asyncio.to_thread(modules.missing, self.plan)
        except (patching.PatchError, OSError) as error:
            refusal = str(error)
        if refusal:
            self.log.cause("refused", refusal)
            await self.leaving.wait()

    def _collect(self) -> None:
        for pid, code in procs.collect().items():
            if self.engine and pid == self.engine.pid:
                self.engine.end(code)

    def _go(self) -> None:
        if not self.leaving.is_set():
            self.leaving.set()
            self.group.changed.set()
            self.log.status["serving"] = False
            self.log.say("leaving", "told to go: draining, then stopping")
            self.group.leave()

    async def _heart(self) -> None:
        while True:
            self.log.status["spent"] = self.group.budget.count()
            self.log.keep()
            await asyncio.sleep(1)

    async def _look(self) -> None:
        """A rail that breaks under a running engine: tokens stop at once, the engine's own words come minutes later."""
        while self.plan.member(self.me.rank).rails:
            await asyncio.sleep(EVERY)
            if self.engine:
                with contextlib.suppress(OSError):  # an interface that goes while it is asked is gone at the next look
                    self.log.faults("rails", await asyncio.to_thread(rails.faults, self.plan, self.me.rank))

    async def _weigh(self) -> None:
        """Weights that change under a running engine: the next start would refuse them, so it is said now."""
        while self.plan.store:
            await asyncio.sleep(WEIGH_EVERY)
            if self.engine:
                self.log.faults("weights", await asyncio.to_thread(self._weights))

    async def _check(self) -> None:
        """GPU, group's secret, rails, weights, memory: until all are right. What outlasts its budget is named once."""
        begun, named = time.monotonic(), ""
        looks = {
            "gpu": self._gpu,
            "secret": self._secret,
            "rails": self._rails,
            "weights": self._weights,
            "memory": self.memory.faults,
        }
        for phase, look in looks.items():
            while not self.leaving.is_set() and (faults := await asyncio.to_thread(look)):
                named = self._waiting(phase, "refused", faults[0], begun, named)
                await self._pause(EVERY)
        if self.memory.short:
            waited = f"{self.plan.limits.memory:.0f} s"
            self.log.note("warning", f"memory: not all of it came back in {waited}; loading all the same")
        if not self.leaving.is_set():
            self.log.mended(("refused",))
            self.log.faults("weights", [])
            self.log.say("checked", self._as_planned())

    def _gpu(self) -> list[str]:
        """In the rules' words: an engine misses it only after minutes."""
        why = gpu.missing() if self.plan.gpu else ""
        return [causes.named([why], self.plan.patterns) or why] if why else []

    def _secret(self) -> list[str]:
        """One rank has nobody to know."""
        try:
            if len(self.plan.members) > 1:
                proof.secret(self.plan.secret)
        except proof.NoSecret as error:
            return [str(error)]
        return []

    def _rails(self) -> list[str]:
        for text in rails.mend(self.plan, self.me.rank):
            self.log.say("rails", text)
        return rails.faults(self.plan, self.me.rank) + rails.unpinnable(self.plan)

    def _weights(self) -> list[str]:
        return check.unverified(self.plan.store, self.plan.weights) if self.plan.store else []

    def _as_planned(self) -> str:
        mine = self.plan.member(self.me.rank).rails
        standing = ", ".join(f"{rail.name} {rail.interface} {rail.address} MTU {rail.mtu}" for rail in mine)
        models = ", ".join(model["id"] for model in self.plan.weights) if self.plan.store else ""
        return "; ".join(part for part in (standing and f"rails: {standing}", models and f"weights: {models}") if part)

    def _waiting(self, phase: str, verdict: str, text: str, begun: float, named: str) -> str:
        """A progress line while it may still come right, the cause once it is late; what was named last."""
        limits = self.plan.limits
        # A container gets its GPU when it is made, or never.
        late = {"gpu": 0.0, "memory": limits.check + limits.memory}
        if time.monotonic() - begun < late.get(phase, limits.check):
            self.log.progress(phase, text)
        elif text != named:
            self.log.cause(verdict, text)
            return text
        return named

    async def _join(self) -> None:
        """Rank 0 listens; something else may hold its port for a moment, or for good."""
        begun, named = time.monotonic(), ""
        while not self.leaving.is_set():
            try:
                return await self.group.join()
            except OSError as error:
                where = f"{self.plan.member(self.me.rank).address}:{self.plan.control_port}"
                text = f"cannot listen at {where}: {error.strerror}; is another group of ranks on this rail?"
                named = self._waiting("peers", "refused", text, begun, named)
            await self._pause(EVERY)

    async def _meet(self) -> None:
        """Until rank 0 says start: everybody is there, full frames reach everybody, all have offered."""
        begun, named, group = time.monotonic(), "", self.group
        while not group.start.is_set() and not self.leaving.is_set():
            if group.down:
                if self.log.status["phase"] != "down":
                    self.log.cause("down", f"stays down: {group.down}; delete rank 0's pod to try again")
            elif not group.present:
                named = self._waiting("peers", "missing", group.waiting, begun, named)
            elif group.offered != group.round:
                named = await self._offer(begun, named)
            else:
                alone = len(self.plan.members) == 1
                others = "pauses after what failed last" if alone else "the others are not yet"
                self.log.progress("peers", f"ready; {others}")
            await self._pause(EVERY / 2)

    async def _offer(self, begun: float, named: str) -> str:
        if not self.echoes:
            self.echoes = await path.listen(self.plan, self.me.rank, self.me.config)
        faults = self._rails() or await path.faults(self.plan, self.me.rank, self.echoes)
        if not faults:
            self.group.offer()
            return named
        return self._waiting("peers", "missing", faults[0], begun, named)

    async def _pause(self, seconds: float) -> None:
        self.group.changed.clear()
        await waits.first(seconds, self.group.changed, self.leaving)

    async def _run(self) -> None:
        """One epoch: from the engine's start to the group's stop."""
        group, log = self.group, self.log
        log.epoch = group.epoch
        log.clear()
        log.status |= {"serving": False, "transport": "", "schedulers": [], "rails": [], "compiling": False}
        if (cause := await watch_engine.missing(self.plan, group, log, self.leaving)) or group.stop.is_set():
            return await self._not_started(cause)
        words = found(self.words, self.plan.programs)
        try:
            watch = Watch(self.plan, group, log)
            self.engine = engine = Engine(words, self.environment, watch.hear)
        except OSError as error:
            return await self._not_started(
                f"{words[0]} cannot be started: {error.strerror}; is this the engine's image?"
            )
        log.status["engine"] = engine.pid
        log.say("engine", f"started {words[0]} as process {engine.pid}")
        cause = await watch.until_over(engine)
        # A node that shuts down tells every process to go, in any order; it kills none of them at once.
        if engine.ended.is_set() and not procs.killed(engine.code or 0, engine.tail):
            await waits.first(TOLD, self.leaving, group.stop)
        if cause:
            log.status["serving"] = False
            followed, broken = FOLLOWED.search(cause), log.status["rails"]
            cause = f"{broken[0]}; {cause}" if broken else cause
            if not self.leaving.is_set():  # also where the stop was faster: whoever looks for who died finds it here
                log.cause("failed", cause)
        if cause and not group.stop.is_set():
            group.lost(cause, own=bool(broken) or not followed)
            await waits.first(self.plan.limits.lost, group.stop)  # without rank 0 it may not come
        log.status |= {"serving": False, "engine": None, "schedulers": [], "rails": [], "moved": None, "requests": None}
        log.say(STOPPING, group.why or cause)
        await engine.stop(self.plan.limits.stop)
        self.engine = None
        log.stopped(group.why or cause)
        log.say("stopped", "nothing of the engine is left")

    async def _not_started(self, cause: str) -> None:
        """This epoch is over before this rank's engine ran."""
        if cause:
            self.log.cause("failed", cause)
            self.group.lost(cause, own=True)
        await self.group.stop.wait()
        self.log.stopped(self.group.why or cause)
