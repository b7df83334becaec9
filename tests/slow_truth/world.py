"""What surrounds a supervisor, played after a script: an engine's process, its port, compilers, the node's memory.

Supervisor, limits, probes' verdicts and the playbook's wait are the product's own; only time, the process and the
port are not there. The limits are those of the rendered plan.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sparkloom.inputs import profile
from sparkloom.inputs.inventory import load as inventory
from sparkloom.launch import patience
from sparkloom.launch.resolve import resolve
from sparkloom.onnode.rank import answers, kernels, life, procs, status_log
from sparkloom.onnode.rank.budget import RestartBudget
from sparkloom.onnode.rank.group import Identity
from sparkloom.onnode.rank.plan import GroupPlan, Member
from sparkloom.onnode.rank.tokens import Progress
from sparkloom.render.manifests import supervision
from sparkloom.render.manifests.names import CONFIG_HASH, RANK
from sparkloom.site.groups import waiting
from tests.slow_truth.clock import Clock

TRUTHS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("truths.yml").read_text())
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
VLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"
FOREVER = 10.0**9


@dataclass(frozen=True)
class Script:
    """One start of an engine, in seconds after it; `FOREVER` for what does not happen."""

    opens: float = FOREVER  # its port, with the first token
    crashes: float = FOREVER
    words: str = ""
    compiles: tuple[float, float] = (FOREVER, FOREVER)
    busy: tuple[float, float] = (FOREVER, FOREVER)  # a request that computes all the time
    hangs: float = FOREVER  # nothing moves any more
    leaks: float = 0.0  # GiB that stay behind
    counts: bool = True  # shows counters


class Process:
    """In place of the engine's process."""

    pids = itertools.count(4000)

    def __init__(self, world: World, hear: Callable[[str], None]) -> None:
        self.world, self.hear, self.pid = world, hear, next(self.pids)
        self.script = world.script(world.starts)
        self.tail, self.ended, self.code = deque[str](maxlen=600), asyncio.Event(), None
        self.born = world.clock.now
        world.starts, world.engine = world.starts + 1, self
        world.began.append(self.born)
        if self.script.crashes < FOREVER:
            world.clock.call_later(self.script.crashes, self._crash)

    @property
    def age(self) -> float:
        return self.world.clock.now - self.born

    @property
    def lives(self) -> bool:
        return not self.ended.is_set()

    def within(self, span: tuple[float, float]) -> bool:
        return self.lives and span[0] <= self.age < span[1]

    @property
    def hung(self) -> bool:
        return self.age >= self.script.hangs

    def _crash(self) -> None:
        if self.lives:
            self.tail.append(self.script.words)
            self.hear(self.script.words)
            self.code = 1
            self.world.available -= self.script.leaks
            self.ended.set()

    async def stop(self, seconds: float) -> None:
        self.code = -15
        self.ended.set()


class World:
    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, script: Callable[[int], Script], name: str) -> None:
        self.clock, self.folder, self.script = Clock(), folder, script
        self.starts, self.began, self.engine = 0, list[float](), None
        self.available, self.questions, self._took = 110.0, 0, 0.0
        self.probed: list[tuple[str, bool]] = []
        self.lines: list[str] = []
        launch = resolve(profile.load(name), inventory())
        self.wait_seconds = patience.wait_seconds(launch.profile.profile.model.measured.load_seconds)
        plan = supervision.plan(launch, "refuse")
        order = GroupPlan.of({**plan, "patterns": yaml.safe_load(supervision.patterns(launch.engine)), "store": ""})
        alone = (Member(0, "spark1", "127.0.0.1"),)
        self.order = replace(order, members=alone, rails=0, patches=(), cache="", run=str(folder), proc=str(folder),
                             words=str(folder / "words"), gpu=False)  # fmt: skip
        (folder / "self").mkdir()
        (folder / "self/status").write_text("CapEff:\t000001ffffffffff\n")  # a privileged rank's
        self._surround(patch)

    def _surround(self, patch: pytest.MonkeyPatch) -> None:
        self.clock.rule(patch, RestartBudget.__init__, Progress.__init__)
        self.clock.took = lambda: self._took
        patch.setattr(life, "Engine", lambda words, environment, hear: Process(self, hear))
        patch.setattr(procs, "adopt", lambda: None)
        patch.setattr(procs, "titled", lambda pid, titles: [])
        patch.setattr(procs, "connections", lambda port: 2 if self._busy() else 0)
        patch.setattr(kernels.procs, "below", lambda pid: self._compilers())
        patch.setattr(life.patching, "apply", lambda *_: {})
        patch.setattr(answers, "listens", lambda address, port: self._opened())
        patch.setattr(answers, "streamed", lambda order: self._asked())
        patch.setattr(answers, "again", lambda order: self._asked())
        patch.setattr(answers, "page", lambda order: self._page())
        patch.setattr(status_log.StatusLog, "_write", lambda _, line: self.lines.append(line))

    # -- the engine's port

    def _opened(self) -> bool:
        self._took = 0.0
        return self.engine is not None and self.engine.lives and self.engine.age >= self.engine.script.opens

    def _busy(self) -> bool:
        return self.engine is not None and self.engine.within(self.engine.script.busy)

    def _asked(self) -> str:
        """A token, or after the supervisor's own patience none: a request waits behind the one that computes."""
        self.questions += 1
        free = self._opened() and not self._busy() and not (self.engine and self.engine.hung)
        self._took = 0.2 if free else self.order.limits.token
        return "" if free else "timed out"

    def _page(self) -> str | None:
        self._took = 0.1
        if not self._opened() or self.engine is None or not self.engine.script.counts:
            return None
        moved = min(self.engine.age, self.engine.script.hangs) if self._busy() else 0.0
        moved = moved if self.engine.age >= self.engine.script.busy[0] else 0.0
        rows = [f'{name}{{model_name="m"}} {float(self._busy())}' for name in self.order.requests]
        return "\n".join([*rows, *(f'{name}{{model_name="m"}} {moved // 25 * 25}' for name in self.order.moves), ""])

    def _compilers(self) -> list[procs.Process]:
        if self.engine is None or not self.engine.within(self.engine.script.compiles):
            return []
        return [procs.Process(77, 1, "R", 5, "cicc --arch sm_121a", int(self.engine.age * 100))]

    # -- the node and the cluster

    def _memory(self) -> None:
        loaded = 84.0 if self.engine is not None and self.engine.lives else 0.0
        rows = {"MemTotal": 121.6, "MemAvailable": self.available - loaded, "AnonPages": 3.0}
        text = "".join(f"{name}: {int(gib * (1 << 20))} kB\n" for name, gib in rows.items())
        (self.folder / "meminfo").write_text(text)

    async def _node(self) -> None:
        """The kubelet asks, and memory is what it is."""
        while True:
            for what in ("live", "started", "ready"):
                self.probed.append((what, status_log.verdict(what, self.log.status, self.clock.now)[0]))
            self._memory()
            await asyncio.sleep(5)

    def start(self) -> None:
        asyncio.set_event_loop(self.clock)
        self._memory()
        self.log = status_log.StatusLog(self.order, 0)

        async def live() -> None:
            self.life = life.Life(self.order, Identity(0, "c", "b", "i"), ["engine"], {}, self.log)
            self._tasks = [asyncio.create_task(self._node()), asyncio.create_task(self.life.live())]

        self.clock.run_until_complete(live())

    def until(self, what: Callable[[], Any], seconds: float) -> float:
        """Seconds until it was so."""
        begun = self.clock.now
        while not what():
            assert self.clock.now - begun < seconds, "\n".join(self.lines[-30:])
            self.clock.sleep(0.5)
        return self.clock.now - begun

    def wait(self) -> waiting.Outcome:
        """What the playbook does, with the time that it takes from the plan."""
        group = waiting.ServedGroup({}, "h", 1, self.wait_seconds)
        return waiting.wait(self, group, lambda line: None, clock=self.clock.time, sleep=self.clock.sleep)

    def end(self) -> None:
        tasks = asyncio.all_tasks(self.clock)
        for task in tasks:
            task.cancel()
        self.clock.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.clock.close()
        asyncio.set_event_loop(None)

    # -- as the wait's source

    def pods(self, labels: dict[str, str]) -> list[Any]:
        ready, _ = status_log.verdict("ready", self.log.status, self.clock.now)
        engine = SimpleNamespace(state=SimpleNamespace(waiting=None, terminated=None), ready=ready, restart_count=0,
                                 last_state=None)  # fmt: skip
        return [SimpleNamespace(
            metadata=SimpleNamespace(name="g-rank0-0", labels={RANK: "0"}, annotations={CONFIG_HASH: "h"}),
            spec=SimpleNamespace(node_name="spark1"),
            status=SimpleNamespace(phase="Running", container_statuses=[engine], conditions=[]),
        )]  # fmt: skip

    def tail(self, pod: str, lines: int, *, previous: bool = False) -> list[str]:
        return self.lines[-lines:]

    def refusals(self, seconds: float) -> Sequence[str]:
        return []

    def report(self, pod: str) -> dict[str, Any] | None:
        return dict(self.log.status)

    def delete_pod(self, name: str) -> None:
        raise AssertionError(f"{name} was deleted")

    def warnings(self) -> dict[str, str]:
        return {}
