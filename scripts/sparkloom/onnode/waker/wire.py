"""HTTP/1.1 as the router and an engine speak it: heads with limits, bodies in pieces, however they are framed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

HEAD = 64 << 10  # bytes of a head: the router's own limit
PIECE = 64 << 10
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HOP = {
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length",
    "expect",
}  # fmt: skip


class Wrong(Exception):
    """No request, or no answer, that can be read on."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True)
class Head:
    """`first`: the three words of a request or an answer; names of headers are lower case, in their order."""

    first: tuple[str, str, str]
    headers: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def get(self, name: str) -> str:
        return next(iter(self.all(name)), "")

    @property
    def passed_on(self) -> list[tuple[str, str]]:
        """What is meant for the other end."""
        named = {word.strip().lower() for value in self.all("connection") for word in value.split(",")}
        return [(name, value) for name, value in self.headers if name not in HOP and name not in named]

    @property
    def length(self) -> int | None:
        """Of the body; None for one in chunks, or to the end of the connection."""
        coded, told = self.all("transfer-encoding"), self.all("content-length")
        if coded:
            if told or [value.strip().lower() for value in coded] != ["chunked"]:
                raise Wrong("a body is framed in one way, by its length or in chunks")
            return None
        if not told:
            return 0
        if len(told) > 1 or not re.fullmatch(r"[0-9]{1,15}", told[0]):
            raise Wrong("a body has one length")
        return int(told[0])

    @property
    def chunked(self) -> bool:
        return bool(self.all("transfer-encoding"))


async def head(reader: asyncio.StreamReader) -> Head | None:
    """None where the connection ends before anything came."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise Wrong("the connection ended within a head") from None
        return None
    except asyncio.LimitOverrunError:
        raise Wrong(f"a head has {HEAD} bytes at most", 431) from None
    return parsed(text)


def parsed(text: bytes) -> Head:
    lines = text.decode("latin-1").split("\r\n")[:-2]
    words = lines[0].split(" ", 2)
    if len(words) != 3:
        raise Wrong("no request line")
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not TOKEN.fullmatch(name) or any(sign in value for sign in "\r\n\0"):
            raise Wrong("a header that is none")
        headers.append((name.lower(), value.strip(" \t")))
    return Head((words[0], words[1], words[2]), tuple(headers))


async def pieces(reader: asyncio.StreamReader, told: Head, *, until_end: bool = False) -> AsyncIterator[bytes]:
    """A body as it comes; `until_end`: an answer without a length ends with its connection."""
    if told.chunked:
        async for piece in _chunks(reader):
            yield piece
        return
    if until_end and not told.all("content-length"):
        while piece := await reader.read(PIECE):
            yield piece
        return
    rest = told.length or 0
    while rest:
        if not (piece := await reader.read(min(PIECE, rest))):
            raise Wrong("the connection ended within a body")
        rest -= len(piece)
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        size = (await _line(reader)).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9a-fA-F]{1,12}", size):
            raise Wrong("a chunk without a size")
        rest = int(size, 16)
        if not rest:
            while await _line(reader):  # trailers
                pass
            return
        while rest:
            if not (piece := await reader.read(min(PIECE, rest))):
                raise Wrong("the connection ended within a body")
            rest -= len(piece)
            yield piece
        if await _line(reader):
            raise Wrong("a chunk that is longer than it said")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n"))[:-2]
    except asyncio.IncompleteReadError:
        raise Wrong("the connection ended within a body") from None
    except asyncio.LimitOverrunError:
        raise Wrong("a line of a body is too long") from None


def written(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    return "\r\n".join((first, *(f"{name}: {value}" for name, value in headers), "", "")).encode("latin-1")


def answer(status: int, kind: str, body: bytes, more: Mapping[str, str], *, close: bool) -> bytes:
    headers = {"content-type": kind, "content-length": str(len(body)), **more}
    if close:
        headers["connection"] = "close"
    return written(f"HTTP/1.1 {status} {REASONS.get(status, 'Answer')}", headers.items()) + body


REASONS = {
    200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 413: "Content Too Large",
    431: "Request Header Fields Too Large", 502: "Bad Gateway", 503: "Service Unavailable",
}  # fmt: skip


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


LAST = b"0\r\n\r\n"
