"""Connections that carry one request at a time, and arrivals that are stamped before they are read.

A turn of asyncio's loop empties and stamps every connection that has something; reading (HTTP, events, JSON, guard)
follows later, one stream's arrivals at a time, with a look at the sockets after each. So what one stream's text costs
never delays another stream's stamp by more than one such portion. No thread, no task, no future for a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import selectors
import ssl
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from sparkloom.measure.bench.ask import Ask
from sparkloom.measure.bench.http1 import Garbled, Response
from sparkloom.measure.bench.target import Target

SWEEP_S = 0.1  # how often deadlines and signals are looked at
CONNECT_S = 10.0
ROOM = memoryview(bytearray(65_536))  # of all connections: what came is copied out at once


class Turns(selectors.DefaultSelector):
    """One stamp for all that has come when the sockets are looked at: none waits for what is done with the others."""

    began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        self.began = time.monotonic()
        return ready


class Connection(asyncio.BufferedProtocol):
    """One connection, plain or TLS; `ask` is the request that it carries."""

    transport: Any

    def __init__(self, pool: Loop, ask: Ask | None, *, again: bool = False) -> None:
        self.pool, self.ask, self.again = pool, ask, again
        self.begun = self.last = pool.now()
        self.connect_s = 0.0
        self.served = 0
        self.reused = self.answered = self.lined_up = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.connect_s = transport, self.pool.now() - self.begun
        self.pool.connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return ROOM

    def buffer_updated(self, nbytes: int) -> None:
        self.pool.received(self, bytes(ROOM[:nbytes]))

    def connection_lost(self, error: Exception | None) -> None:
        self.pool.lost(self, error)


class Loop:
    """`now` is a steady clock in seconds; every stamp of a run is read from it."""

    def __init__(self, target: Target) -> None:
        self._turns = Turns()
        self._events = asyncio.SelectorEventLoop(self._turns)
        self._events.set_exception_handler(self._broke)
        self.now = self._events.time
        self._target, self._addresses = target, target.addresses()
        self._connecting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: dict[Connection, None] = {}  # in the order in which they were made
        self._idle: list[Connection] = []
        self._backlog: deque[tuple[Connection, Ask, float, str | None]] = deque()
        self._until: Callable[[], bool] = lambda: True
        self._bug: Exception | None = None
        self._events.call_later(SWEEP_S, self._sweep)

    def at(self, when: float, call: Callable[[], None]) -> None:
        self._events.call_at(when, call)

    def get(self, path: str, seconds: float, then: Callable[[bytes], None]) -> None:
        """Another question beside the load; what goes wrong with it is no failure of the measurement."""
        self._start(self._got(path, seconds, then))

    async def _got(self, path: str, seconds: float, then: Callable[[bytes], None]) -> None:
        with contextlib.suppress(OSError, Garbled):
            async with asyncio.timeout(seconds):
                host, port = self._addresses[0]
                tls, name = self._target.tls, self._target.host if self._target.tls else None
                reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=name)
                with contextlib.closing(writer):
                    writer.write(self._target.message("GET", path, "Connection: close"))
                    answer, body = Response(), b""
                    while not answer.done and (data := await reader.read(1 << 16)):
                        body += b"".join(answer.feed(data))
            if answer.close() and answer.status == 200:
                then(body)

    def open(self, count: int) -> None:
        """Connects until `count` connections are idle or have failed; nothing is sent on them."""
        for _ in range(count - len(self._idle)):
            self._connect(Connection(self, None))
        self.run(lambda: not self._connecting)

    def submit(self, ask: Ask) -> None:
        """Sends on an idle connection, or on a new one."""
        if self._idle:
            connection = self._idle.pop()
            connection.ask, connection.reused = ask, connection.served > 0
            self._send(connection)
        else:
            self._connect(Connection(self, ask))

    def run(self, until: Callable[[], bool]) -> None:
        """Until the condition holds; it is looked at when a request has ended, and with every sweep."""
        self._until = until
        while not (self._bug or until()):
            self._events.run_forever()
        if self._bug:
            raise self._bug

    def busy(self) -> list[Ask]:
        return [connection.ask for connection in self._connections if connection.ask]

    def drop_busy(self) -> None:
        """Closes what is under way: the engine sees that nobody reads any more."""
        while self._backlog:
            self._read_next()
        for connection in [connection for connection in self._connections if connection.ask]:
            self._drop(connection)

    def close(self) -> None:
        self._until = lambda: False
        for connection in list(self._connections):
            self._drop(connection)
        self._events.run_until_complete(self._given_up())
        self._events.close()

    async def _given_up(self) -> None:
        """What is still connecting is, and what was dropped is closed in the loop's next turn."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, asyncio.sleep(0), return_exceptions=True)

    def _broke(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error in what the loop calls is the program's: it ends the run instead of a line in a log."""
        self._bug = context.get("exception") or RuntimeError(context["message"])
        self._events.stop()

    def _look(self) -> None:
        if self._until():
            self._events.stop()

    def _connect(self, connection: Connection) -> None:
        self._connecting += 1
        self._start(self._connected(connection))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._events.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._worked)

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._broke(self._events, {"exception": error})

    async def _connected(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._first_that_answers(connection)
        except TimeoutError as error:  # the kernel's has a number
            self._failed(connection, error if error.errno else TimeoutError(f"no connection within {CONNECT_S:g} s"))
        except OSError as error:
            self._failed(connection, error)
        finally:
            self._connecting -= 1
            self._look()

    async def _first_that_answers(self, connection: Connection) -> None:
        tls = self._target.tls
        name = self._target.host if tls else None
        problem = OSError("the host has no address")
        for host, port in self._addresses:
            try:
                await self._events.create_connection(lambda: connection, host, port, ssl=tls, server_hostname=name)
                return
            except OSError as error:
                problem = error
        raise problem

    def connected(self, connection: Connection) -> None:
        self._connections[connection] = None
        if connection.ask:
            self._send(connection)
        else:
            self._idle.append(connection)

    def _send(self, connection: Connection) -> None:
        assert connection.ask
        connection.answered, connection.last = False, self.now()
        connection.ask.sent(connection.last, connection.connect_s, again=connection.again)
        connection.transport.write(connection.ask.payload)

    def received(self, connection: Connection, data: bytes) -> None:
        """Stamped, and put in line to be read."""
        stamp, ask = self._turns.began, connection.ask
        if ask is None:
            self._drop(connection)  # an idle server that talks
            return
        connection.answered, connection.last = True, stamp
        if ask.feed(data, stamp):
            self._line_up(connection, ask, stamp)

    def lost(self, connection: Connection, error: Exception | None) -> None:
        """The connection has ended: after what is in line, its request hears of it."""
        if connection not in self._connections:  # dropped here
            return
        ask = connection.ask
        self._drop(connection)
        if ask and connection.reused and not connection.answered:
            # closed while idle, before a byte of this answer: the one case to ask again
            self._connect(Connection(self, ask, again=True))
        elif ask:
            self._put(connection, ask, self.now(), words(error) if error else "")

    def _line_up(self, connection: Connection, ask: Ask, stamp: float) -> None:
        """Once: a turn reads all that has come, so that who is behind never holds more than a round of turns."""
        if not connection.lined_up:
            connection.lined_up = True
            self._put(connection, ask, stamp, None)

    def _put(self, connection: Connection, ask: Ask, at: float, why: str | None) -> None:
        self._backlog.append((connection, ask, at, why))
        if len(self._backlog) == 1:
            self._events.call_soon(self._read_next)

    def _read_next(self) -> None:
        """One portion; the next one follows a look at the sockets."""
        if not self._backlog:
            return
        connection, ask, at, why = self._backlog.popleft()
        if self._backlog:
            self._events.call_soon(self._read_next)
        connection.lined_up = False
        if ask.over:
            return
        if why is None:
            ask.read()
        else:
            ask.closed(at, why)
        if ask.over:
            if connection.ask is ask:
                self._free(connection, ask)
            self._ended(ask)

    def _ended(self, ask: Ask) -> None:
        ask.ended()
        self._look()

    def _free(self, connection: Connection, ask: Ask) -> None:
        if ask.reusable:
            connection.ask = None
            connection.served += 1
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _failed(self, connection: Connection, error: OSError) -> None:
        ask, connection.ask = connection.ask, None
        if ask:
            ask.lost(*named(error, self._target), self.now())
            self._ended(ask)

    def _drop(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        connection.ask = None
        connection.transport.abort()
        if connection in self._idle:
            self._idle.remove(connection)

    def _sweep(self) -> None:
        now = self.now()
        for connection in list(self._connections):
            ask = connection.ask
            if not ask or connection.lined_up:
                continue
            if ask.waits(now):
                self._line_up(connection, ask, now)
            elif now - connection.last > SWEEP_S:
                ask.expired(now)
                if ask.over:
                    self._drop(connection)
                    self._ended(ask)
        self._events.call_later(SWEEP_S, self._sweep)
        self._look()


def words(error: Exception) -> str:
    """A failed connection in words; asyncio's own are of no system."""
    number = getattr(error, "errno", None)
    if number and not isinstance(error, ssl.SSLError):
        return os.strerror(number)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def named(error: OSError, target: Target) -> tuple[str, str]:
    """Kind and sentence."""
    sentence = f"{target.url}: {words(error)}"
    if isinstance(error, ssl.SSLError):
        return "tls", f"{sentence}; --ca names the file that vouches for the server"
    if isinstance(error, TimeoutError):
        return "connect-timeout", sentence
    return "refused" if error.errno == errno.ECONNREFUSED else "unreachable", sentence
