"""Bodies of requests that wait: each bounded, and all together; and whether one asks for a stream."""

from __future__ import annotations

import re

from sparkloom.onnode.waker.wire import Wrong

LONGEST = 100 << 20  # bytes of one, as the router grants at most
ALL = 256 << 20  # of all that wait
DEEP = re.compile(rb'["\[\]{}]')
TOP = re.compile(rb'["\[\]{}:,]|[^\s"\[\]{}:,]+')
BACKSLASH = ord("\\")


class Full(Exception):
    """No room for one more body now."""


class Room:
    def __init__(self, most: int = ALL) -> None:
        self.most, self.taken = most, 0

    def take(self, size: int) -> None:
        if self.taken + size > self.most:
            raise Full
        self.taken += size

    def give(self, size: int) -> None:
        self.taken -= size


class Body:
    """What came of it so far; its room is given back once, whoever ends it."""

    def __init__(self, room: Room, longest: int = LONGEST) -> None:
        self.room, self.longest = room, longest
        self.content = bytearray()
        self._reserved = 0

    def expect(self, size: int) -> None:
        if size > self.longest:
            raise Wrong(f"a request has {self.longest >> 20} MB at most", 413)
        if size > self._reserved:
            self.room.take(size - self._reserved)
            self._reserved = size

    def add(self, piece: bytes) -> None:
        self.expect(len(self.content) + len(piece))
        self.content += piece

    def end(self) -> None:
        self.room.give(self._reserved)
        self._reserved, self.content = 0, bytearray()


def streams(body: bytes | bytearray) -> bool:
    """Does it say "stream": true? Read without a copy: a body may hold pictures of many megabytes."""
    depth, at, key, last = 0, 0, b"", False
    awaited = False  # a colon came behind `key`
    while found := (TOP if depth == 1 else DEEP).search(body, at):
        token, at = found[0], found.end()
        if token == b'"':
            end = _closed(body, at)
            if depth == 1 and not awaited:
                key = bytes(body[at : min(end, at + 16)])
            elif depth == 1:
                key, awaited = b"", False
            at = end + 1
        elif token in b"{[":
            depth, awaited = depth + 1, False
        elif token in b"}]":
            depth -= 1
        elif token == b":":
            awaited = True
        elif token == b",":
            key, awaited = b"", False
        elif key == b"stream" and awaited:
            last, awaited = token == b"true", False
    return last


def _closed(body: bytes | bytearray, at: int) -> int:
    """Where the string ends that begins here; the body's end where it does not."""
    while (end := body.find(b'"', at)) >= 0:
        before = end
        while before > at and body[before - 1] == BACKSLASH:
            before -= 1
        if (end - before) % 2 == 0:
            return end
        at = end + 1
    return len(body)
