"""Rank 0 decides for the group: who belongs to it, when it starts, when all stop, when it is given up."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from typing import Any

from sparkloom.onnode.rank import causes, procs
from sparkloom.onnode.rank.control_port import ControlPort
from sparkloom.onnode.rank.group import Identity, RankGroup
from sparkloom.onnode.rank.plan import GroupPlan, Member
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.onnode.rank.wire import Message, Wire, number, text

TRANSPORTS = 2  # starts in a row that NCCL took another way in: rails were looked at anew between them, so no third
FOLLOWERS = 2.0  # seconds for the first cause, when what came first only followed it


@dataclass
class Link:
    """One member's connection."""

    rank: int
    wire: Wire
    seen: float
    offered: int = -1
    agreed: int = -1  # the epoch whose way it found to be the planned one


class Head(RankGroup):
    def __init__(self, plan: GroupPlan, me: Identity, log: StatusLog) -> None:
        super().__init__(plan, me, log)
        self.links: dict[int, Link] = {}
        self.refusals: dict[int, str] = {}
        self._control_port: ControlPort | None = None
        self._late: asyncio.TimerHandle | None = None
        self._follower = ""
        self._agreed = -1
        self._draining = False
        self.begun = False  # a start was decided here: from then on nobody knows better what failed
        self._served = -1  # the last epoch in which it did
        self._tasks: set[asyncio.Task[Any]] = set()

    async def join(self) -> None:
        if len(self.plan.members) > 1 and self._control_port is None:
            opened = ControlPort(self.plan, self.log, self._take, self._unproved)
            opened.open()
            self._control_port = opened
            self._task(self._beat())
        self._count()

    def offer(self) -> None:
        self.offered = self.round
        self._consider()

    def lost(self, cause: str, *, own: bool) -> None:
        if not self.start.is_set():
            return
        if own:
            self._break(cause, counts=not self._draining)
        elif not self._follower:
            self._follower = cause
            asyncio.get_running_loop().call_later(FOLLOWERS, self._only_followers, self.round)

    def served(self, yes: bool) -> None:
        yes = yes and not self._draining
        if self.answers != yes and self.start.is_set():
            self.answers = yes
            self._tell({"answers": yes, "epoch": self.epoch})
            self._settle()

    def agree(self) -> None:
        self._agreed = self.epoch
        self._settle()

    def proved(self) -> None:
        self.budget.token()
        self._tell({"proved": True, "epoch": self.epoch})

    def leave(self) -> None:
        self._drain("rank 0 was told to go")

    async def _take(self, member: Member, wire: Wire, hello: Message) -> None:
        if objection := self._objection(hello):
            self._refuse(member, objection, wire)
            return
        link, how = self._link(member.rank, wire), "its supervisor's connection closed"
        try:
            self._welcome(link, hello)
            while (message := await wire.receive()) is not None:
                link.seen = time.monotonic()
                self._hear(link, message)
        except (TypeError, ValueError, OverflowError) as error:
            how = f"its supervisor said what makes no sense: {error}"
        self._gone(link, how)

    def _unproved(self, member: Member, why: str) -> None:
        """Somebody at a planned address is no member; it says nothing about one that is here."""
        told = f"{member} has not come: what connects from its address {why}"
        if member.rank not in self.links and self.refusals.get(member.rank) != told:
            self.refusals[member.rank] = told
            self._count()

    def _objection(self, hello: Message) -> str:
        if hello.get("config") != self.me.config:
            return (
                f"configuration {named(hello.get('config'))}, rank 0 has {self.me.config}; "
                "apply the profile again (playbooks/serve.yml), which renews every rank"
            )
        if hello.get("build") != self.me.build:
            return (
                f"another build of the image ({named(hello.get('build'))}, rank 0 has {self.me.build}): "
                "its tag means two things here; pin engine.digest in the profile"
            )
        return ""

    def _refuse(self, member: Member, objection: str, wire: Wire) -> None:
        self.refusals[member.rank] = f"{member} is refused: it runs {objection}"
        wire.send({"refused": f"rank 0 refuses this rank: it runs {objection}"})
        wire.close()
        self._count()

    def _link(self, rank: int, wire: Wire) -> Link:
        if old := self.links.get(rank):
            old.wire.close()
        self._break(f"{self.plan.member(rank)} was started anew", counts=False)
        self.refusals.pop(rank, None)
        link = self.links[rank] = Link(rank, wire, time.monotonic())
        return link

    def _welcome(self, link: Link, hello: Message) -> None:
        its_epoch = number(hello.get("epoch") or 0)
        self.epoch = max(self.epoch, its_epoch)
        if not self.begun:
            self.budget.learn(hello.get("failures") or (), hello.get("row") or (), served=bool(hello.get("served")))
        link.wire.send({"welcome": True, "round": self.round, "down": self.down})
        if not self.budget.row:  # it may have been away as the group was proved
            link.wire.send({"proved": True, "epoch": its_epoch})
        self._count()

    def _hear(self, link: Link, message: Message) -> None:
        if message.get("offer") == self.round:
            link.offered = self.round
            self._consider()
        if "lost" in message and message.get("epoch") == self.epoch:
            self.lost(f"{self.plan.member(link.rank)}: {text(message['lost'])}", own=bool(message.get("own")))
        if message.get("agreed") == self.epoch and self.start.is_set():
            link.agreed = self.epoch
            self._settle()
        if "works" in message and message.get("epoch") == self.epoch:
            self.worked = time.monotonic()
        if message.get("leave"):
            self._drain(f"{self.plan.member(link.rank)} was told to go")

    def _gone(self, link: Link, how: str) -> None:
        link.wire.close()
        if self.links.get(link.rank) is link:
            del self.links[link.rank]
            self._break(f"{self.plan.member(link.rank)} is gone: {how}", counts=False)
            self._count()

    def _count(self) -> None:
        """Who is missing, said to everyone."""
        absent = [m for m in self.plan.members[1:] if m.rank not in self.links]
        words = [self.refusals.get(m.rank) or f"{m} has not come" for m in absent]
        self.present, self.waiting = not absent, "; ".join(words)
        self._wake()

    def _consider(self) -> None:
        """Everybody is there and could start: do it, after a pause when it failed lately."""
        ready = self.offered == self.round and all(link.offered == self.round for link in self.links.values())
        if ready and self.present and not self.start.is_set() and not self.down and not self._draining:
            if self._late:
                self._late.cancel()
            self._late = asyncio.get_running_loop().call_later(self.budget.pause(), self._go, self.round)

    def _go(self, decided: int) -> None:
        if decided != self.round or self.start.is_set() or not self.present or self._draining:
            return
        epoch = self.epoch + 1
        self.begun = True
        self._tell({"start": epoch})
        self._begin(epoch)

    def _settle(self) -> None:
        """A token alone is no proof: one rank's half of the fabric carries it too."""
        agreed = [self._agreed, *(link.agreed for link in self.links.values())]
        yes = self.answers and all(epoch == self.epoch for epoch in agreed)
        if self.serves != yes:
            self.serves = yes
            self._served = self.epoch if yes else self._served
            self._tell({"serves": yes, "epoch": self.epoch})

    def _only_followers(self, decided: int) -> None:
        """Nobody failed by himself: a rank that is on its way out or fell silent took the others along."""
        if decided == self.round and self.start.is_set():
            now = time.monotonic()
            silent = any(now - link.seen > FOLLOWERS for link in self.links.values())
            self._break(self._follower, counts=not (self._draining or silent))

    def _break(self, why: str, *, counts: bool) -> None:
        """All stop; what ran so far is over."""
        running = self.start.is_set()
        self._follower = ""
        if not running:
            return
        if counts:
            self._failed(why)
        elif self._served == self.epoch:  # it would serve on if nobody had ended it
            self.proved()
        self.round += 1
        spent = {"failures": self.budget.ages(), "row": self.budget.row, "served": self.budget.served}
        self._tell({"stop": why, "round": self.round, "down": self.down, **spent})
        self._halt(why)

    def _failed(self, why: str) -> None:
        """The same cause twice is said in a line of its own: whoever waits for this start need not wait longer."""
        self.budget.served = self.budget.served or self._served == self.epoch
        if not self.budget.failed(why):
            self.down = f"{self.budget.spent()}, the last time: {why}"
        elif [causes.stop(kind) for kind in self.budget.row[-TRANSPORTS:]] == ["transport"] * TRANSPORTS:
            self.down = f"{self.budget.in_a_row(TRANSPORTS)}, the last time: {why}"
        elif (again := self.budget.again()) > 1:
            self.log.say("again", f"{self.budget.in_a_row(again)}, each time: {why}")

    def _drain(self, why: str) -> None:
        """At once: the next word of who leaves may be in the same packet, and its engine's end is no failure."""
        if not self._draining:
            self._draining = True
            self.served(False)
            self._task(self._drained(why))

    async def _drained(self, why: str) -> None:
        """Requests that run may end; new ones are not sent here any more."""
        limit = time.monotonic() + self.plan.limits.drain
        while self.start.is_set() and time.monotonic() < limit and (running := procs.connections(self.plan.port)):
            self.log.progress("draining", f"{why}; {running} connections to the engine are open")
            await asyncio.sleep(0.5)
        self._break(why, counts=False)
        self._draining = False

    async def _beat(self) -> None:
        while True:
            self._tell({"beat": True, "present": self.present, "waiting": self.waiting})
            now = time.monotonic()
            for link in list(self.links.values()):
                if now - link.seen > self.plan.limits.lost:
                    self._gone(link, f"no word for {self.plan.limits.lost:.0f} s")
            await asyncio.sleep(self.plan.limits.beat)

    def _tell(self, message: Message) -> None:
        for link in self.links.values():
            link.wire.send(message)

    def _task(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def named(told: object) -> str:
    """A hash as another rank tells it, and nothing else that it may have put there."""
    return told if isinstance(told, str) and re.fullmatch(r"[0-9a-zA-Z-]{1,64}", told) else "that is no hash"
