"""One connection between two ranks: lines of a bounded length, each proved once both sides have shown the secret.

follower  {"rank": 1, "nonce": "..."}            all that somebody without the secret ever hears from a rank
head      {"nonce": "...", "proof": "..."}       and from rank 0
follower  <proof> {}
then both <proof> {...}                          its configuration, its build, and all that follows
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
from typing import Any

from sparkloom.onnode.rank import proof
from sparkloom.onnode.rank.proof import Session

Message = dict[str, Any]
SHORT = 256  # bytes of a line from somebody who has proved nothing
LONGEST = 1 << 18  # of one that is proved
CHUNK = 4096
HIGHEST = 1 << 40  # an epoch or a round
WAITING = 1 << 20  # bytes that a peer may leave unread before it counts as gone
TEXT, ENTRIES = 4000, 64  # characters of a text, entries of a list: a line that is sent stays below LONGEST
OLDER = "which an older build of ours does not know; playbooks/serve.yml makes every rank anew"


class Unproved(Exception):
    """The other end has not shown that it knows the group's secret; the text says what came instead."""


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.session: Session | None = None
        self._rest = bytearray()

    async def line(self, longest: int) -> bytes:
        """The next one; empty when the other end is gone or says more than it may."""
        while (end := self._rest.find(b"\n")) < 0 and len(self._rest) <= longest:
            try:
                piece = await self.reader.read(CHUNK)
            except OSError:
                piece = b""
            if not piece:
                return b""
            self._rest += piece
        if not 0 <= end <= longest:
            return b""
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    def write(self, line: bytes) -> None:
        if not self.writer.is_closing():
            self.writer.write(line + b"\n")
            if self.writer.transport.get_write_buffer_size() > WAITING:
                self.abort()

    def send(self, message: Message) -> None:
        """To a side that has shown the secret."""
        if self.session is not None:
            self.write(self.session.seal(json.dumps(short(message)).encode()))

    async def receive(self, longest: int = LONGEST) -> Message | None:
        """The next message; None when the other end is gone, or what came is not proved to be its next word."""
        line = await self.line(longest)
        text = self.session.open(line) if line and self.session else None
        try:
            message = json.loads(text) if text is not None else None
        except (ValueError, RecursionError):
            return None
        return short(message) if isinstance(message, dict) else None

    def close(self) -> None:
        self.writer.close()

    def abort(self) -> None:
        self.writer.transport.abort()


def short(message: Message) -> Message:
    return {key: _short(value) for key, value in message.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value[:TEXT]
    return [_short(entry) for entry in value[-ENTRIES:]] if isinstance(value, list) else value


def text(value: object) -> str:
    """Of another rank, for a log and a terminal: of a bounded length, and nothing that moves a cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value)[:TEXT])


def number(value: object) -> int:
    """An epoch or a round."""
    if not isinstance(value, int) or not 0 <= value <= HIGHEST:
        raise ValueError("expected a number of an epoch")
    return value


async def meet(wire: Wire, secret: bytes, rank: int) -> None:
    """The follower's side; rank 0 shows the secret first, so an impostor at its address learns a number and a nonce."""
    mine = proof.nonce()
    wire.write(b'{"rank": %d, "nonce": "%s"}' % (rank, mine.hex().encode()))
    answer = await wire.line(SHORT)
    if answer.startswith(b'{"refused": '):
        raise Unproved(f"answers without the group's secret, {OLDER}")
    if not (found := proof.ANSWER.fullmatch(answer)):
        raise Unproved(f"ends the connection instead of showing the group's secret, {OLDER}")
    session = Session.of(secret, rank, mine, bytes.fromhex(found[1].decode()), proof.FOLLOWER)
    if not hmac.compare_digest(session.shown().hex().encode(), found[2]):
        raise Unproved(
            "has another secret of the group than this rank; a Secret that was renewed reaches every pod within two "
            "minutes; else playbooks/serve.yml makes every rank anew"
        )
    wire.session = session
    wire.send({})


async def take(wire: Wire, secret: bytes, rank: int) -> Message:
    """The head's side: what the follower says of itself once it has shown the secret."""
    line = await wire.line(SHORT)
    found = proof.HELLO.fullmatch(line)
    if not found or int(found[1]) != rank:
        raise Unproved(f"came without the group's secret, {OLDER}")
    mine = proof.nonce()
    wire.session = Session.of(secret, rank, bytes.fromhex(found[2].decode()), mine, proof.HEAD)
    wire.write(b'{"nonce": "%s", "proof": "%s"}' % (mine.hex().encode(), wire.session.shown().hex().encode()))
    if await wire.receive(SHORT) is None:
        raise Unproved("came, and has not shown that it knows this group's secret")
    hello = await wire.receive()
    if hello is None:
        raise Unproved("showed the group's secret and went")
    return hello


def keep_alive(writer: asyncio.StreamWriter, seconds: float) -> None:
    """A peer that vanished without a word is noticed by the kernel too."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
