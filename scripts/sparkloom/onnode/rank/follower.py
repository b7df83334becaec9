"""Every other rank: connected to rank 0 over the first rail, it starts and stops when rank 0 says so."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from sparkloom.onnode.rank import proof, waits, wire
from sparkloom.onnode.rank.group import Identity, RankGroup
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.onnode.rank.wire import Message, Wire

ANSWERED = 5.0  # seconds for rank 0 to show that it knows the group's secret
REFUSED = 5  # beats until a refused rank asks again: the others may be renewed meanwhile


class Follower(RankGroup):
    def __init__(self, plan: GroupPlan, me: Identity, log: StatusLog) -> None:
        super().__init__(plan, me, log)
        self._wire: Wire | None = None
        self._heard = 0.0
        self._tasks: list[asyncio.Task[Any]] = []
        self.waiting = self._silence()

    async def join(self) -> None:
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._stay()), loop.create_task(self._beat())]

    def offer(self) -> None:
        self.offered = self.round
        self._send({"offer": self.round})

    def lost(self, cause: str, *, own: bool) -> None:
        self._send({"lost": cause, "own": own, "epoch": self.epoch})

    def agree(self) -> None:
        self._send({"agreed": self.epoch})

    def works(self, how: str) -> None:
        self._send({"works": how, "epoch": self.epoch})

    def leave(self) -> None:
        if self._wire is None:
            self._halt("this rank was told to go")
        self._send({"leave": True})

    def _silence(self) -> str:
        return f"{self.plan.member(0)} does not answer at {self._where()}"

    def _where(self) -> str:
        return f"{self.plan.member(0).address}:{self.plan.control_port}"

    async def _stay(self) -> None:
        while True:
            refused = await self._connection()
            self._wire, self.present, self.offered = None, False, -1
            if not refused:
                self.waiting = self._silence()
            if self.start.is_set():
                self._halt(f"{self.plan.member(0)} is gone")
            self._wake()
            await asyncio.sleep(self.plan.limits.beat * (REFUSED if refused else 1))

    async def _connection(self) -> bool:
        """One connection from beginning to end; True when rank 0 refused this rank, or this rank who answers there."""
        try:
            reader, writer = await asyncio.open_connection(
                self.plan.member(0).address,
                self.plan.control_port,
                limit=wire.CHUNK,
                local_addr=(self.plan.member(self.me.rank).address, 0),
            )
        except OSError:
            return False
        wire.keep_alive(writer, self.plan.limits.lost)
        connection = Wire(reader, writer)
        try:
            await asyncio.wait_for(wire.meet(connection, proof.secret(self.plan.secret), self.me.rank), ANSWERED)
        except (wire.Unproved, proof.NoSecret, waits.Late) as error:
            connection.abort()
            why = str(error) or f"shows no secret of the group in {ANSWERED:.0f} s"
            self.waiting = f"what listens at {self._where()} {why}" if not isinstance(error, proof.NoSecret) else why
            return True
        try:
            return await self._spoken(connection)
        except (TypeError, ValueError, KeyError, OverflowError):  # no message of this build
            return False
        finally:
            connection.close()

    async def _spoken(self, connection: Wire) -> bool:
        self._heard = time.monotonic()
        hello = {
            "config": self.me.config,
            "build": self.me.build,
            "instance": self.me.instance,
            "epoch": self.epoch,
            "failures": self.budget.ages(),
            "row": self.budget.row,
            "served": self.budget.served,
        }
        connection.send(hello)
        refused = False
        while (message := await connection.receive()) is not None:
            self._heard = time.monotonic()
            if "welcome" in message:
                self._wire = connection
            if "refused" in message:
                refused, self.waiting = True, wire.text(message["refused"])
            self._hear(message)
        return refused

    def _hear(self, message: Message) -> None:
        if "round" in message:
            self.round, self.down = wire.number(message["round"]), wire.text(message["down"])
        if "failures" in message:
            self.budget.learn(message["failures"], message.get("row") or (), served=bool(message.get("served")))
        if "beat" in message:
            self.present, self.waiting = bool(message["present"]), wire.text(message["waiting"])
        if "start" in message:
            self.down = ""
            self._begin(wire.number(message["start"]))
        if "stop" in message and self.start.is_set():
            self._halt(wire.text(message["stop"]))
        if message.get("epoch") == self.epoch:
            self.answers = bool(message.get("answers", self.answers))
            self.serves = bool(message.get("serves", self.serves))
        if "proved" in message and message.get("epoch") == self.epoch:
            self.budget.token()
        self._wake()

    async def _beat(self) -> None:
        while True:
            self._send({"beat": True})
            if self._wire and time.monotonic() - self._heard > self.plan.limits.lost:
                self._wire.abort()
            await asyncio.sleep(self.plan.limits.beat)

    def _send(self, message: Message) -> None:
        if self._wire is not None:
            self._wire.send(message)
