"""One connection to the server, plain or TLS, that never blocks."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sparkloom.measure.bench.exchange import Exchange
from sparkloom.measure.bench.target import Target

if TYPE_CHECKING:
    import ssl

Address = tuple[socket.AddressFamily, tuple[str, int]]
RECEIVE = 65_536
_VIEW = memoryview(bytearray(RECEIVE))
IN_PROGRESS = (0, errno.EINPROGRESS)


class Connection:
    """Connecting, shaking hands, ready; then one exchange at a time."""

    def __init__(self, target: Target, addresses: list[Address], now: float) -> None:
        self._target, self._addresses = target, list(addresses)
        self._socket: Any = None  # plain, or TLS over it
        self._pending: Callable[[], int] | None = None  # TLS: bytes that no poll tells of
        self._later: tuple[type[OSError], ...] = (BlockingIOError,)
        self.shaking = False
        self.begun = self.last = now
        self.connect_s = 0.0
        self.ready = self.reused = self.again = self.answered = self.waiting = self.lined_up = False
        self.served = 0
        self.out = b""
        self.exchange: Exchange | None = None

    @property
    def fileno(self) -> int:
        return self._socket.fileno() if self._socket else -1

    def begin(self) -> None:
        """Starts to connect to the first address that lets itself be tried; OSError when none does."""
        problem: OSError = OSError("the host has no address")
        while self._addresses:
            family, address = self._addresses.pop(0)
            self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = self._socket.connect_ex(address)
            if code in IN_PROGRESS:
                return
            self._socket.close()
            problem = OSError(code, os.strerror(code))
        raise problem

    def advance(self, now: float) -> bool:
        """The socket has moved: true when it is ready to use. Another address is tried where this one failed."""
        if not self.shaking:
            if code := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                old, self._socket = self._socket, None
                try:
                    if not self._addresses:
                        raise OSError(code, os.strerror(code))
                    self.begin()
                finally:
                    old.close()
                return False
            if self._target.tls:
                self._wrap(self._target.tls)
        if self.shaking:
            try:
                self._socket.do_handshake()
            except self._later:
                return False
        self.ready, self.connect_s = True, now - self.begun
        return True

    def _wrap(self, tls: ssl.SSLContext) -> None:
        import ssl

        self.shaking, self._later = True, (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
        self._socket = tls.wrap_socket(self._socket, server_hostname=self._target.host, do_handshake_on_connect=False)
        self._pending = self._socket.pending

    def flush(self) -> None:
        """Sends what waits, as far as it goes."""
        try:
            while self.out:
                self.out = self.out[self._socket.send(self.out) :]
        except self._later:
            pass

    def receive(self) -> bytes | None:
        """What is there; empty at the end, None when it was nothing for us (a TLS record of its own)."""
        try:
            data = bytes(_VIEW[: self._socket.recv_into(_VIEW)])
            if self._pending:
                while data and self._pending():
                    data += self._socket.recv(RECEIVE)
            return data
        except self._later:
            return None

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        self.ready = False


def words(error: OSError) -> str:
    """A failed connection in words."""
    return error.strerror or str(error) or type(error).__name__


def named(error: OSError, target: Target) -> tuple[str, str]:
    """Kind and sentence."""
    sentence = f"{target.url}: {words(error)}"
    import ssl

    if isinstance(error, ssl.SSLError):
        return "tls", f"{sentence}; --ca names the file that vouches for the server"
    if isinstance(error, TimeoutError):
        return "connect-timeout", sentence
    return "refused" if error.errno == errno.ECONNREFUSED else "unreachable", sentence
