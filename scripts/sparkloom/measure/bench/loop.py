"""The event loop: connections that send one exchange at a time, and arrivals that are stamped before they are read.

All connections that have something are emptied and stamped first; reading (HTTP, events, JSON, guard) follows later,
one stream's arrivals at a time, with a look at the sockets after each. So what one stream's text costs never delays
another stream's stamp by more than one such portion. A selector is enough for that: no thread, no task, no future for
a token.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import select
import time
from collections import deque
from collections.abc import Callable

from sparkloom.measure.bench.connection import Connection, named, words
from sparkloom.measure.bench.exchange import Exchange
from sparkloom.measure.bench.target import Target

SWEEP_S = 0.1  # how often deadlines and signals are looked at


class Loop:
    """`now` is a steady clock in seconds; every stamp of a run is read from it."""

    def __init__(self, target: Target, *, connect_s: float = 10.0) -> None:
        self.now = time.monotonic
        self._target, self._connect_s = target, connect_s
        self._addresses = target.addresses()
        self._poll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._idle: list[Connection] = []
        self._backlog: deque[tuple[Connection, Exchange, float, str | None]] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._swept = 0.0

    def at(self, when: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (when, next(self._order), call))

    def open(self, count: int) -> None:
        """Connects until `count` connections are idle or have failed; nothing is sent on them."""
        for _ in range(count - len(self._idle)):
            self._connect(None)
        self.run(lambda: all(c.exchange or c.ready for c in self._connections.values()))

    def submit(self, exchange: Exchange) -> None:
        """Sends on an idle connection, or on a new one."""
        if self._idle:
            connection = self._idle.pop()
            connection.exchange, connection.reused = exchange, connection.served > 0
            self._send(connection)
        else:
            self._connect(exchange)

    def run(self, until: Callable[[], bool]) -> None:
        """Until the condition holds; it is looked at whenever something has happened."""
        now, poll, find = self.now, self._poll.poll, self._connections.get
        while not until():
            ready = poll(0.0 if self._backlog else self._wait(now()))
            stamp = now()
            for descriptor, events in ready:
                if connection := find(descriptor):
                    if events == select.EPOLLIN and connection.ready:
                        self._receive(connection, stamp)
                    else:
                        self._happened(connection, events, stamp)
            while self._timers and self._timers[0][0] <= stamp:
                heapq.heappop(self._timers)[2]()
            if self._backlog:
                self._read(*self._backlog.popleft())
            if stamp - self._swept >= SWEEP_S:
                self._sweep(stamp)

    def busy(self) -> list[Exchange]:
        return [c.exchange for c in self._connections.values() if c.exchange]

    def drop_busy(self) -> None:
        """Closes what is under way: the engine sees that nobody reads any more."""
        while self._backlog:
            self._read(*self._backlog.popleft())
        for connection in [c for c in self._connections.values() if c.exchange]:
            self._drop(connection)

    def close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._poll.close()

    def _wait(self, now: float) -> float:
        return max(0.0, min(SWEEP_S, self._timers[0][0] - now)) if self._timers else SWEEP_S

    def _connect(self, exchange: Exchange | None, *, again: bool = False) -> None:
        connection = Connection(self._target, self._addresses, self.now())
        connection.exchange, connection.again = exchange, again
        try:
            connection.begin()
        except OSError as error:
            self._failed(connection, error)
            return
        self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        self._connections[connection.fileno] = connection
        self._poll.register(connection.fileno, select.EPOLLIN | select.EPOLLOUT)

    def _happened(self, connection: Connection, events: int, stamp: float) -> None:
        """Moves bytes; what came is put in line with its stamp."""
        try:
            if not connection.ready:
                self._advance(connection)
                return
            if connection.out:
                self._flush(connection)
            if events & ~select.EPOLLOUT:
                self._receive(connection, stamp)
        except OSError as error:
            self._gone(connection, stamp, words(error))

    def _advance(self, connection: Connection) -> None:
        descriptor = connection.fileno
        try:
            done = connection.advance(self.now())
        except OSError as error:
            self._forget(descriptor)
            self._failed(connection, error)
            return
        if connection.fileno != descriptor:  # the next of the host's addresses
            self._forget(descriptor)
            self._watch(connection)
        elif done:
            self._poll.modify(descriptor, select.EPOLLIN)
            if connection.exchange:
                self._send(connection)
            else:
                self._idle.append(connection)
        elif connection.shaking:
            self._poll.modify(descriptor, select.EPOLLIN)

    def _send(self, connection: Connection) -> None:
        exchange = connection.exchange
        assert exchange
        connection.out, connection.answered = exchange.payload, False
        connection.last = self.now()
        exchange.sent(connection.last, connection.connect_s, again=connection.again)
        try:
            self._flush(connection)
        except OSError as error:
            self._gone(connection, self.now(), words(error))

    def _flush(self, connection: Connection) -> None:
        before = bool(connection.waiting)
        connection.flush()
        if bool(connection.out) != before:
            connection.waiting = bool(connection.out)
            extra = select.EPOLLOUT if connection.out else 0
            self._poll.modify(connection.fileno, select.EPOLLIN | extra)

    def _receive(self, connection: Connection, stamp: float) -> None:
        try:
            data = connection.receive()
        except OSError as error:
            self._gone(connection, stamp, words(error))
            return
        if data is None:
            return
        exchange = connection.exchange
        if not data:
            self._gone(connection, stamp, "")
        elif exchange is None:
            self._drop(connection)  # an idle server that talks
        else:
            connection.answered, connection.last = True, stamp
            if exchange.feed(data, stamp):
                self._line_up(connection, exchange, stamp)

    def _gone(self, connection: Connection, stamp: float, why: str) -> None:
        """The connection has ended: after what is in line, its exchange hears of it."""
        exchange, answered = connection.exchange, connection.answered
        stale = connection.reused and not answered
        self._drop(connection)
        if exchange and stale:  # closed while idle, before a byte of this answer: the one case to ask again
            self._connect(exchange, again=True)
        elif exchange:
            self._backlog.append((connection, exchange, stamp, why))

    def _line_up(self, connection: Connection, exchange: Exchange, stamp: float) -> None:
        """Once: a turn reads all that has come, so that who is behind never holds more than a round of turns."""
        if not connection.lined_up:
            connection.lined_up = True
            self._backlog.append((connection, exchange, stamp, None))

    def _read(self, connection: Connection, exchange: Exchange, at: float, why: str | None) -> None:
        connection.lined_up = False
        if exchange.over:
            return
        if why is None:
            exchange.read()
        else:
            exchange.closed(at, why)
        if exchange.over:
            if connection.exchange is exchange:
                self._free(connection, exchange)
            exchange.ended()

    def _free(self, connection: Connection, exchange: Exchange) -> None:
        if exchange.reusable:
            connection.exchange = None
            connection.served += 1
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _failed(self, connection: Connection, error: OSError) -> None:
        exchange, connection.exchange = connection.exchange, None
        connection.close()
        if exchange:
            exchange.request.fail(*named(error, self._target), self.now())
            self.at(self.now(), exchange.ended)  # not here: what it starts may fail as fast

    def _drop(self, connection: Connection) -> None:
        self._forget(connection.fileno)
        connection.exchange = None
        connection.close()
        if connection in self._idle:
            self._idle.remove(connection)

    def _forget(self, descriptor: int) -> None:
        if self._connections.pop(descriptor, None):
            with contextlib.suppress(OSError):  # closing a socket has taken it out already
                self._poll.unregister(descriptor)

    def _sweep(self, now: float) -> None:
        self._swept = now
        for connection in list(self._connections.values()):
            exchange = connection.exchange
            if not connection.ready:
                if now - connection.begun > self._connect_s:
                    self._forget(connection.fileno)
                    self._failed(connection, TimeoutError(f"no connection within {self._connect_s:g} s"))
            elif exchange and exchange.waits(now):
                self._line_up(connection, exchange, now)
            elif exchange and now - connection.last > SWEEP_S and not connection.lined_up:
                exchange.expired(now)
                if exchange.over:
                    self._drop(connection)
                    exchange.ended()
