"""Every other rank: connected to rank 0 over the first rail, it starts and stops when rank 0 says so."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from sparkloom.onnode.rank.group import LONGEST, Identity, Message, RankGroup, keep_alive, receive, send
from sparkloom.onnode.rank.order import Order
from sparkloom.onnode.rank.status_log import StatusLog

REFUSED = 5  # beats until a refused rank asks again: the others may be renewed meanwhile


class Follower(RankGroup):
    def __init__(self, order: Order, me: Identity, log: StatusLog) -> None:
        super().__init__(order, me, log)
        self._writer: asyncio.StreamWriter | None = None
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

    def served(self, yes: bool) -> None:
        """Not asked here: only rank 0 answers requests."""

    def agree(self) -> None:
        self._send({"agreed": self.epoch})

    def proved(self) -> None:
        """Rank 0 says so."""

    def works(self, how: str) -> None:
        self._send({"works": how, "epoch": self.epoch})

    def leave(self) -> None:
        if self._writer is None:
            self._halt("this rank was told to go")
        self._send({"leave": True})

    def _silence(self) -> str:
        head = self.order.member(0)
        return f"{head} does not answer at {head.address}:{self.order.control_port}"

    async def _stay(self) -> None:
        while True:
            refused = await self._connection()
            self._writer, self.present, self.offered = None, False, -1
            if not refused:
                self.waiting = self._silence()
            if self.start.is_set():
                self._halt(f"{self.order.member(0)} is gone")
            self._wake()
            await asyncio.sleep(self.order.budgets.beat * (REFUSED if refused else 1))

    async def _connection(self) -> bool:
        """One connection from beginning to end; True when rank 0 refused this rank."""
        try:
            reader, writer = await asyncio.open_connection(
                self.order.member(0).address, self.order.control_port, limit=LONGEST,
                local_addr=(self.order.member(self.me.rank).address, 0),
            )  # fmt: skip
        except OSError:
            return False
        keep_alive(writer, self.order.budgets.lost)
        self._heard = time.monotonic()
        hello = {
            "rank": self.me.rank, "config": self.me.config, "build": self.me.build, "instance": self.me.instance,
            "epoch": self.epoch, "failures": self.budget.ages(), "row": self.budget.row,
        }  # fmt: skip
        send(writer, hello)
        refused = False
        while message := await receive(reader):
            self._heard = time.monotonic()
            if "welcome" in message:
                self._writer = writer
            if "refused" in message:
                refused, self.waiting = True, str(message["refused"])
            self._hear(message)
        writer.close()
        return refused

    def _hear(self, message: Message) -> None:
        if "round" in message:
            self.round, self.down = int(message["round"]), str(message["down"])
        if "failures" in message:
            self.budget.learn(message["failures"], message.get("row") or ())
        if "beat" in message:
            self.present, self.waiting = bool(message["present"]), str(message["waiting"])
        if "start" in message:
            self.down = ""
            self._begin(int(message["start"]))
        if "stop" in message and self.start.is_set():
            self._halt(str(message["stop"]))
        if message.get("epoch") == self.epoch:
            self.answers = bool(message.get("answers", self.answers))
            self.serves = bool(message.get("serves", self.serves))
        if "proved" in message and message.get("epoch") == self.epoch:
            self.budget.token()
        self._wake()

    async def _beat(self) -> None:
        while True:
            self._send({"beat": True})
            if self._writer and time.monotonic() - self._heard > self.order.budgets.lost:
                self._writer.transport.abort()
            await asyncio.sleep(self.order.budgets.beat)

    def _send(self, message: Message) -> None:
        if self._writer is not None:
            send(self._writer, message)
