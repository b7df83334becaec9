"""Server-sent events of an OpenAI stream: body pieces in, the data of each event out, right for any split.

An engine whose rank died has four ways to say so, and most of them end with [DONE] as if all was well: `error` in the
data (vLLM, SGLang), an object of that name (vLLM before 0.10), a line `error:` (llama.cpp), a finish reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

MOST_EVENT = 16_000_000
DONE = b"[DONE]"  # without it a stream was cut
FAILED = {"abort", "error"}  # finish reasons of a request that the engine gave up

Channel = Literal["content", "reasoning", "tool"]
# The first spelling that says something counts: some engines send both of reasoning.
SPELLINGS: tuple[tuple[Channel, tuple[str, ...]], ...] = (
    ("reasoning", ("reasoning_content", "reasoning")),
    ("content", ("content",)),
)


def texts(delta: dict[str, Any]) -> Iterator[tuple[Channel, str]]:
    """What a piece of a message says; of tool calls their arguments."""
    for channel, keys in SPELLINGS:
        if said := next((text for key in keys if (text := delta.get(key)) and isinstance(text, str)), None):
            yield channel, said
    for function in functions(delta):
        if (arguments := function.get("arguments")) and isinstance(arguments, str):
            yield "tool", arguments


def functions(delta: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of the tool calls in it."""
    for call in delta.get("tool_calls") or ():
        if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
            yield function


def error(event: dict[str, Any]) -> str | None:
    """What the engine says went wrong, in one line."""
    if told := event.get("error") or (event if event.get("object") == "error" else None):
        return _words(told)
    reasons = (choice.get("finish_reason") for choice in event.get("choices") or () if isinstance(choice, dict))
    given_up = next((reason for reason in reasons if isinstance(reason, str) and reason in FAILED), None)
    return given_up and f"the engine gave it up (finish_reason {given_up})"


def _words(told: Any) -> str:
    while isinstance(told, dict) and isinstance(told.get("error"), dict):
        told = told["error"]
    message = told.get("message") or told.get("error") if isinstance(told, dict) else told
    return " ".join(str(message or told).split())[:300]


def named(data: bytes) -> bytes:
    """The data of an event that is called `error`, so that its data says it too."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        told = data.decode(errors="replace")
    return json.dumps({"error": told or "an error without words"}).encode()


class Events:
    """`feed` gives the `data` of every event that is complete; comments and other fields are skipped.

    An event that is called an error has data that `error` knows, whatever it held.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._failed = False  # the event that is being read is called an error
        self._data: list[bytes] = []
        self._size = 0
        self._begun = False

    @property
    def idle(self) -> bool:
        """The next byte is the first of another event."""
        return self._begun and not self._rest and not self._data and not self._failed

    def feed(self, piece: bytes) -> list[bytes]:
        # What engines send nearly always: one event, whole.
        if not (self._rest or self._data or self._failed) and piece[:6] == b"data: " and piece[-2:] == b"\n\n":
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
            elif line.startswith(b"error:"):
                self._data.append(line[6:].strip())
                self._failed = True
            elif line.startswith(b"event:"):
                self._failed = line[6:].strip() == b"error"
            elif not line:
                events += self._event()
        if self._size + len(self._rest) > MOST_EVENT:
            raise ValueError(f"an event of more than {MOST_EVENT:,} bytes")
        return events

    def _event(self) -> list[bytes]:
        """An empty line ends what came before it."""
        data, failed = b"\n".join(self._data), self._failed
        found = bool(self._data) or failed
        self._data, self._size, self._failed = [], 0, False
        return [named(data) if failed else data] if found else []

    def finish(self) -> list[bytes]:
        """The stream has ended: an event without its empty line counts too, as engines mean it."""
        rest, self._rest = self._rest, b""
        events = self._lines(rest + b"\n\n") if rest or self._data or self._failed else []
        self._rest = b""
        return events
