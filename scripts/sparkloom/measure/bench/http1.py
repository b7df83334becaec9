"""HTTP/1.1 as far as one streamed answer needs it: bytes in, body pieces out, right for any split of the bytes.

Content codings are refused: the client asks for none, and a compressed stream has no honest arrival times.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_HEAD = 65_536
MOST_SIZE_LINE = 4_096


class Garbled(Exception):
    """What came is no HTTP response; the message quotes it."""


class Response:
    """One response. `feed` gives the body as far as it has come; `close` says whether an ended connection ended it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.done = False
        self.keep_alive = False
        self.left = b""  # bytes behind the end: nobody asked for them
        self._buffer = b""
        self._step: Callable[[list[bytes]], bool] = self._head
        self._need = 0
        self._trailers = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces of the body in `data` and in what was waiting before it."""
        self._buffer = self._buffer + data if self._buffer else data
        pieces: list[bytes] = []
        while not self.done and self._step(pieces):
            pass
        if self.done and self._buffer:
            self.left, self._buffer = self.left + self._buffer, b""
        return pieces

    @property
    def between(self) -> bool:
        """The next byte is the first of another chunk, or any byte of a body that has none."""
        return self._step in (self._size, self._until_close) and not self._buffer

    @property
    def chunked(self) -> bool:
        return self._step == self._size

    def close(self) -> bool:
        """The other side has closed: true when the body was complete, or ends this way."""
        if self._step == self._until_close:
            self.done = True
        return self.done

    def _head(self, pieces: list[bytes]) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if not b"HTTP/1.".startswith(self._buffer[:7]) or len(self._buffer) > MOST_HEAD:
                raise Garbled(f"expected an HTTP/1.1 answer, found {_quoted(self._buffer)}")
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        version, _, rest = first.partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (rest[:3].isascii() and rest[:3].isdigit()):
            raise Garbled(f"expected an HTTP/1.1 answer, found {first[:80]!r}")
        self.status = int(rest[:3])
        self.headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise Garbled(f"a header without a colon: {line[:80]!r}")
            self.headers[name.strip().lower()] = value.strip()
        if 100 <= self.status < 200:
            return True  # "go on": the answer itself follows
        self.keep_alive = version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"
        if (coding := self.headers.get("content-encoding", "identity").lower()) != "identity":
            raise Garbled(f"the body is {coding}-encoded, which was not asked for")
        self._body()
        return True

    def _body(self) -> None:
        if self.status in (204, 304):
            self.done = True
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._step = self._size
        elif "content-length" in self.headers:
            length = self.headers["content-length"]
            if not (length.isascii() and length.isdigit() and len(length) < 19):
                raise Garbled(f"Content-Length is {length[:40]!r}")
            self._need = int(length)
            self._step, self.done = self._counted, self._need == 0
        else:
            self.keep_alive, self._step = False, self._until_close

    def _size(self, pieces: list[bytes]) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > MOST_SIZE_LINE:
                raise Garbled(f"expected the size of a chunk, found {_quoted(self._buffer)}")
            return False
        digits = self._buffer[:end].partition(b";")[0].strip()
        try:
            self._need = int(digits, 16) if digits.isalnum() else -1
        except ValueError:
            self._need = -1
        if self._need < 0:
            raise Garbled(f"expected the size of a chunk, found {_quoted(self._buffer[: end + 2])}")
        self._buffer = self._buffer[end + 2 :]
        self._step = self._chunk if self._need else self._trailer
        return True

    def _chunk(self, pieces: list[bytes]) -> bool:
        have = len(self._buffer)
        if have < self._need + 2:
            if take := min(have, self._need):
                pieces.append(self._buffer[:take])
                self._buffer, self._need = self._buffer[take:], self._need - take
            return False
        if self._buffer[self._need : self._need + 2] != b"\r\n":
            raise Garbled(f"a chunk does not end where its size says: {_quoted(self._buffer[self._need :])}")
        if self._need:
            pieces.append(self._buffer[: self._need])
        self._buffer, self._step = self._buffer[self._need + 2 :], self._size
        return True

    def _trailer(self, pieces: list[bytes]) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > MOST_HEAD:
                raise Garbled("trailers without an end")
            return False
        self._buffer, self.done = self._buffer[end + 2 :], end == 0
        self._trailers += end
        if self._trailers > MOST_HEAD:
            raise Garbled("trailers without an end")
        return True

    def _counted(self, pieces: list[bytes]) -> bool:
        take = self._buffer[: self._need]
        if take:
            pieces.append(take)
        self._buffer, self._need = self._buffer[len(take) :], self._need - len(take)
        self.done = self._need == 0
        return False

    def _until_close(self, pieces: list[bytes]) -> bool:
        if self._buffer:
            pieces.append(self._buffer)
        self._buffer = b""
        return False


def _quoted(data: bytes) -> str:
    return repr(data[:60].decode("latin-1"))
