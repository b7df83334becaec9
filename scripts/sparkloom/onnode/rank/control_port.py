"""Rank 0's control port: who is not planned is not heard; who has shown no secret waits among few, and not long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Awaitable, Callable

from sparkloom.onnode import listening
from sparkloom.onnode.rank import proof, waits, wire
from sparkloom.onnode.rank.plan import GroupPlan, Member
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.onnode.rank.wire import Message, Wire

EACH, TOTAL = 4, 64  # connections of one address, and of all, that have shown nothing yet
WITHIN = 5.0  # seconds to show the secret: three lines over a rail
BACKLOG = 512  # of the kernel: it drops what is beyond, and a member that is dropped comes a second late
NAMED_EVERY = 60.0
RESET = struct.pack("ii", 1, 0)  # closed at once, nothing kept
# All that a rank without the secret is told; an older build shows it as why it waits.
REFUSED = b'{"refused": "rank 0 refuses this rank: it came without the group\'s secret, %s"}' % wire.OLDER.encode()

Admitted = Callable[[Member, Wire, Message], Awaitable[None]]


class ControlPort:
    """`admitted` gets a member's connection with its first words; `unproved` why a planned address was not let in."""

    def __init__(
        self, plan: GroupPlan, log: StatusLog, admitted: Admitted, unproved: Callable[[Member, str], None]
    ) -> None:
        self.plan, self.log, self.admitted, self.unproved = plan, log, admitted, unproved
        self.planned = {member.address: member for member in plan.members[1:]}
        self.limit = listening.ConnectionLimit(EACH, TOTAL)
        self._listens: asyncio.Task[None] | None = None
        self._strangers, self._named = 0, -NAMED_EVERY

    def open(self) -> None:
        """An OSError when something else holds the port."""
        listener = listening.at(self.plan.member(0).address, self.plan.control_port, BACKLOG)
        self._listens = asyncio.get_running_loop().create_task(listening.accept(listener, self._taken))

    async def _taken(self, given: socket.socket, address: str) -> None:
        if member := self.planned.get(address):
            await self._admit(given, member)
        else:
            self._turn_away(given, address)

    def _turn_away(self, given: socket.socket, address: str) -> None:
        """Before a byte is read; named now and then, since a plan may be wrong."""
        self._strangers += 1
        with contextlib.suppress(OSError):
            given.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        given.close()
        if time.monotonic() - self._named > NAMED_EVERY:
            self._named = time.monotonic()
            ours = ", ".join(self.planned)
            self.log.note(
                "stranger", f"{address} was not heard at the control port ({self._strangers} so far); planned: {ours}"
            )

    async def _admit(self, given: socket.socket, member: Member) -> None:
        me = asyncio.current_task()
        assert me is not None
        self.limit.enter(me, member.address, me.cancel)
        connection = None
        try:
            reader, writer = await asyncio.open_connection(sock=given, limit=wire.CHUNK)
            wire.keep_alive(writer, self.plan.limits.lost)
            connection = Wire(reader, writer)
            secret = proof.secret(self.plan.secret)
            hello = await asyncio.wait_for(wire.take(connection, secret, member.rank), WITHIN)
        except (wire.Unproved, proof.NoSecret, waits.Late) as error:
            self._refuse(member, connection, str(error) or f"showed no secret in {WITHIN:.0f} s")
            return
        except (OSError, asyncio.CancelledError):  # gone, or it had to make room
            connection.abort() if connection else given.close()
            return
        finally:
            self.limit.leave(me)
        await self.admitted(member, connection, hello)

    def _refuse(self, member: Member, connection: Wire | None, why: str) -> None:
        if connection:
            connection.write(REFUSED)
            connection.close()
        self.unproved(member, why)
