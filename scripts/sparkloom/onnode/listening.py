"""Who listens and who waits there: a socket on its own interface, a limit on connections, a server with both."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import socketserver
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any

from sparkloom.onnode import interfaces

AGAIN = 0.1  # seconds, when the kernel hands nothing out
RECEIVED = 16_384  # bytes that the kernel keeps of one connection while nobody reads it


def at(address: str, port: int, backlog: int) -> socket.socket:
    """The address alone is not enough: Linux also takes a frame for it that comes in over another interface."""
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)  # what is accepted inherits it
        if device := interfaces.holding(address):
            with contextlib.suppress(PermissionError):  # kernels before 5.7, without NET_RAW
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        listener.bind((address, port))
        listener.listen(backlog)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


async def accept(listener: socket.socket, taken: Callable[[socket.socket, str], Coroutine[Any, Any, None]]) -> None:
    """For good: `taken` gets each connection and its address, in a task of its own. One in a turn, so that a flood of
    them leaves the loop to those who are there."""
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    while True:
        try:
            given, peer = await loop.sock_accept(listener)
        except OSError:  # one that is gone already, or no descriptor left for it
            await asyncio.sleep(AGAIN)
            continue
        task = loop.create_task(taken(given, str(peer[0])))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await asyncio.sleep(0)


class ConnectionLimit:
    """Who waits at one port. A newcomer always finds a place, and who waits longest pays for it: of his own address,
    and where all places are taken, of the address that has the most. Nobody is pushed out by another address's many."""

    def __init__(self, each: int, total: int) -> None:
        self.each, self.total = each, total
        self._waiting: dict[Hashable, tuple[str, Callable[[], object]]] = {}  # the longest first

    def enter(self, who: Hashable, address: str, end: Callable[[], object]) -> None:
        """`end` is called when this one has to make room."""
        taken = Counter(place for place, _ in self._waiting.values())
        if taken[address] >= self.each:
            self._end_first(address)
        elif len(self._waiting) >= self.total:
            self._end_first(taken.most_common(1)[0][0])
        self._waiting[who] = (address, end)

    def leave(self, who: Hashable) -> bool:
        """False where it is not here any more."""
        return self._waiting.pop(who, None) is not None

    def _end_first(self, address: str) -> None:
        who = next(who for who, (place, _) in self._waiting.items() if place == address)
        self._waiting.pop(who)[1]()


class Server(socketserver.ThreadingTCPServer):
    """A thread for each connection that the limit has a place for: pods, ranks and stores of weights serve with it."""

    daemon_threads = True

    def __init__(self, name: str, listener: socket.socket, handler: Any, limit: ConnectionLimit) -> None:
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.name, self.limit = listener, name, limit
        self.lock = threading.Lock()  # of the limit

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self.limit.enter(request, client_address[0], partial(_hang_up, request))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.lock:
            self.limit.leave(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of ours; anything else is said in one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"{self.name}: {type(error).__name__}: {error}", flush=True)


def _hang_up(connection: socket.socket) -> None:
    """Its thread hears the end and closes it."""
    with contextlib.suppress(OSError):  # the other side was first
        connection.shutdown(socket.SHUT_RDWR)
