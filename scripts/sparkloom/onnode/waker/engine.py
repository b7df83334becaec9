"""A request on its way to an engine: sent again until the first byte of an answer comes, never after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from sparkloom.onnode.rank import waits
from sparkloom.onnode.waker import wire
from sparkloom.onnode.waker.told import Group
from sparkloom.onnode.waker.wire import Head, Wrong

CONNECT = 2.0
AGAIN = 0.5
PATIENCE = 20.0  # seconds in which a group that was ready a moment ago may still refuse
OUR_HEADER = "x-sparkloom-group"
KEPT_BACK = (OUR_HEADER, "accept-encoding")  # a stream that began here says nothing of a coding


class Lost(Exception):
    """No answer came."""


@dataclass
class Reply:
    head: Head
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def status(self) -> int:
        return int(self.head.first[1])

    @property
    def bodiless(self) -> bool:
        return self.status in (204, 304)

    async def pieces(self) -> AsyncIterator[bytes]:
        """`Wrong` or an OSError where it breaks off."""
        if not self.bodiless:
            async for piece in wire.pieces(self.reader, self.head, until_end=True):
                yield piece

    def close(self) -> None:
        """At once: an engine whose client has gone stops computing."""
        self.writer.transport.abort()


async def ask(
    group: Group, asked: Head, body: bytes | bytearray, clock: Callable[[], float], patience: float = PATIENCE
) -> Reply:
    """`Lost` when nothing answers within `patience`; who is cancelled leaves no connection behind."""
    begun = clock()
    while True:
        try:
            return await _once(group, asked, body)
        except (OSError, waits.Late) as error:
            if clock() - begun > patience:
                raise Lost(str(error) or type(error).__name__) from None
        await asyncio.sleep(AGAIN)


async def _once(group: Group, asked: Head, body: bytes | bytearray) -> Reply:
    opened = asyncio.open_connection(group.address, group.port, limit=wire.HEAD)
    reader, writer = await asyncio.wait_for(opened, CONNECT)
    try:
        method, path, _ = asked.first
        kept = [(name, value) for name, value in asked.passed_on if name not in KEPT_BACK]
        headers = [*kept, ("content-length", str(len(body))), ("connection", "close")]
        writer.write(wire.written(f"{method} {path} HTTP/1.1", headers))
        for start in range(0, len(body), wire.PIECE):
            writer.write(bytes(body[start : start + wire.PIECE]))
            await writer.drain()
        if not (first := await reader.read(1)):
            raise ConnectionResetError("the engine closed the connection before its answer")
    except BaseException:
        writer.transport.abort()
        raise
    try:
        return Reply(wire.parsed(first + await reader.readuntil(b"\r\n\r\n")), reader, writer)
    except (OSError, EOFError, asyncio.LimitOverrunError, Wrong) as error:
        writer.transport.abort()
        raise Lost(f"its answer has no head: {error}") from None
    except BaseException:
        writer.transport.abort()
        raise
