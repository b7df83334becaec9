"""How two nodes' stores talk over a rail: short lines, each proved with the run's secret, which itself never travels.

    giver   sparkloom-store 1 <its nonce>
    taker   <its nonce> <proof> manifest <sha256> | file <sha256> <position> | released
    giver   <answer> <bytes> <sha256 of them, or -> <proof>, and then the bytes

A proof is an HMAC-SHA256 over who speaks, both nonces and all that the line says, so that none is worth anything in
another connection, to another question or in the other direction. The bytes of a file carry none: the taker knows
their sha256 from the manifest, and that from the controller.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import socket
import struct
import time

GREETING = "sparkloom-store 1"
ANSWERS = ("manifest", "file", "wait", "unknown", "failed", "done")
LINE = 400  # bytes of the longest line
BODY = 16 << 20  # bytes of the largest manifest
HELLO = re.compile(rf"{GREETING} ([0-9a-f]{{32}})")
ASKED = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64}) ([ -~]{1,200})")
ANSWERED = re.compile(rf"({'|'.join(ANSWERS)}) ([0-9]{{1,15}}) ([0-9a-f]{{64}}|-) ([0-9a-f]{{64}})")


class NotProved(OSError):
    """The other side does not speak as one that has this run's secret does."""


def nonce() -> str:
    return secrets.token_hex(16)


def proof(secret: bytes, *parts: str) -> str:
    made = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        made.update(b"%d:" % len(part) + part.encode())
    return made.hexdigest()


def limit(connection: socket.socket, seconds: float) -> None:
    """By the kernel: `sendfile` needs a connection that blocks, and blocks no longer than this."""
    span = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, span)


class Lines:
    """Lines from a stranger: none is longer than the longest that we know, none takes longer than `seconds`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._rest = connection, b""

    def read(self, seconds: float) -> str:
        """Empty where the other side has ended it."""
        until = time.monotonic() + seconds
        while (end := self._rest.find(b"\n")) < 0:
            if len(self._rest) >= LINE or time.monotonic() > until:
                raise NotProved("a line without an end")
            if not (piece := self._connection.recv(LINE)):
                return ""
            self._rest += piece
        text, self._rest = self._rest[:end], self._rest[end + 1 :]
        return text.decode("ascii", "replace")


class Connection:
    """The taker's end of one."""

    def __init__(self, address: str, port: int, own: str | None, seconds: float) -> None:
        source = (own, 0) if own else None
        self._socket = socket.create_connection((address, port), timeout=seconds, source_address=source)
        self._reader = self._socket.makefile("rb")
        self._left = 0

    def ask(self, secret: bytes, request: str) -> tuple[str, int, str]:
        """The answer, how many bytes come with it and their sha256; all three are proved."""
        hello = HELLO.fullmatch(self._line())
        if not hello:
            raise NotProved("it is no store of this version")
        mine = nonce()
        asks = proof(secret, "taker", hello[1], mine, request)
        self._socket.sendall(f"{mine} {asks} {request}\n".encode())
        if not (text := self._line()):
            raise NotProved("it hung up: it knows another run's secret, or does not expect this node")
        answered = ANSWERED.fullmatch(text)
        if not answered or not hmac.compare_digest(
            answered[4], proof(secret, "giver", hello[1], mine, request, answered[1], answered[2], answered[3])
        ):
            raise NotProved("its answer does not prove that it knows this run's secret")
        self._left = int(answered[2])
        return answered[1], self._left, answered[3]

    def body(self, sha256: str) -> bytes:
        """All that comes with an answer other than a file."""
        if self._left > BODY:
            raise NotProved(f"it announces {self._left} bytes; at most {BODY} are read")
        data = self._reader.read(self._left)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise NotProved("what it sent was cut or changed on the way")
        return data

    def read_into(self, buffer: memoryview) -> int:
        """Of a file's bytes, and nothing that might come behind them; 0 at their end."""
        size = self._reader.readinto(buffer[: self._left]) if self._left else 0
        self._left -= size
        return size

    def _line(self) -> str:
        return self._reader.readline(LINE).decode("ascii", "replace").rstrip("\n")

    def close(self) -> None:
        self._reader.close()
        self._socket.close()
