"""Server-sent events: body pieces in, the data of each event out, right for any split and any line ending."""

from __future__ import annotations

MOST_EVENT = 16_000_000


class Events:
    """`feed` gives the `data` of every event that is complete; comments and other fields are skipped."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._begun = False

    @property
    def idle(self) -> bool:
        """The next byte is the first of another event."""
        return self._begun and not self._rest and not self._data

    def feed(self, piece: bytes) -> list[bytes]:
        # What engines send nearly always: one event, whole.
        if not self._rest and not self._data and piece[:6] == b"data: " and piece[-2:] == b"\n\n":
            inner = piece[6:-2]
            if b"\n" not in inner and b"\r" not in inner:
                self._begun = True
                return [inner]
        return self._lines(self._rest + piece)

    def _lines(self, text: bytes) -> list[bytes]:
        if not self._begun:
            if b"\xef\xbb\xbf".startswith(text[:3]) and len(text) < 3:
                self._rest = text
                return []
            self._begun, text = True, text.removeprefix(b"\xef\xbb\xbf")
        self._rest = b""
        # A carriage return at the very end may be half of a line ending.
        held = text.endswith(b"\r")
        lines = (text[:-1] if held else text).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + (b"\r" if held else b"")
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._size += len(line)
            elif line == b"data":
                self._data.append(b"")
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data, self._size = [], 0
        if self._size + len(self._rest) > MOST_EVENT:
            raise ValueError(f"an event of more than {MOST_EVENT:,} bytes")
        return events

    def finish(self) -> list[bytes]:
        """The stream has ended: an event without its empty line counts too, as engines mean it."""
        rest, self._rest = self._rest, b""
        events = self._lines(rest + b"\n\n") if rest or self._data else []
        self._rest = b""
        return events
