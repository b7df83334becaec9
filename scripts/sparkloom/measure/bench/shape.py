"""The bytes of a stream's events around their one text that changes.

An engine's events differ in nothing but the text for long stretches. Where the bytes before and after it are the same,
and the text itself is the inside of a JSON string, the event says what the one before it said with another text: it
need not be parsed to know that. Anything else goes through the parsers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from sparkloom.onnode import sse
from sparkloom.onnode.sse import Channel

# An arrival that ends like this is probably one whole event, in one whole chunk where the body is chunked.
ENDS = (b"}\n\n\r\n", b"}\n\n", b"}\r\n\r\n\r\n", b"}\r\n\r\n")
PROBE = "a text that no engine says"
_EVENT = re.compile(rb"(data: ?)(\{[^\r\n]*\})(\n\n|\r\n\r\n)")
_PLACE = re.compile(rb'"(?:reasoning_content|reasoning|content)"\s*:\s*"((?:[^"\\]|\\.)+)"')
_UNSAFE = b'"\\' + bytes(range(1, 32))
_string = json.JSONDecoder().decode


class Shape:
    """`texts` reads arrivals that fit; the first that does not ends it."""

    def __init__(self, before: bytes, after: bytes, channel: Channel, size: bytes | None) -> None:
        """`size`: how the size of a chunk is written; None where the body is not chunked."""
        self._before, self._after, self.channel, self._size = before, after, channel, size
        self._openings: dict[int, bytes] = {}

    def texts(self, arrivals: Sequence[bytes], start: int) -> list[str]:
        texts, openings, after = [], self._openings, self._after
        for data in islice(arrivals, start, None):
            opening = openings.get(len(data)) or self._opening(len(data))
            if not (data.startswith(opening) and data.endswith(after)):
                break
            text = data[len(opening) : -len(after)]
            if not text:
                break
            texts.append(text)
        return _decoded(texts) if texts else []

    def _opening(self, length: int) -> bytes:
        """How an arrival of so many bytes begins: the size of its chunk, and the event up to its text."""
        opening = bytes(length + 1) if self._size else self._before  # no chunk may have this length: nothing fits
        for digits in range(1, 9):
            payload = length - 4 - digits
            if self._size and payload > 0 and len(size := self._size % payload) == digits:
                opening = size + b"\r\n" + self._before
        self._openings[length] = opening
        return opening


def _decoded(texts: list[bytes]) -> list[str]:
    """The insides of JSON strings as text, up to the first that is none."""
    joined = b"\0".join(texts)
    if len(joined.translate(None, _UNSAFE)) == len(joined):
        try:
            plain = joined.decode().split("\0")
        except UnicodeDecodeError:
            plain = []
        if len(plain) == len(texts):
            return plain
    decoded = []
    for text in texts:
        try:
            decoded.append(str(_string(f'"{text.decode()}"')))
        except ValueError:
            break
    return decoded


def learn(arrival: bytes, channel: Channel, *, chunked: bool) -> Shape | None:
    """The shape of an arrival whose event has one text; None where it is not framed plainly."""
    style, rest = None, arrival
    if chunked:
        size, _, rest = arrival.partition(b"\r\n")
        style = next((style for style in (b"%x", b"%X") if style % (len(rest) - 2) == size), None)
        if style is None or not rest.endswith(b"\r\n"):
            return None
        rest = rest[:-2]
    framed = _EVENT.fullmatch(rest)
    if not framed:
        return None
    event, tail = framed[2], framed[3] + (b"\r\n" if chunked else b"")
    for place in _PLACE.finditer(event):
        before, after = event[: place.start(1)], event[place.end(1) :]
        try:
            said = read(before + PROBE.encode() + after)
        except NoChunk:
            continue
        if place[1] != PROBE.encode() and said == Chunk([(channel, PROBE)]):
            return Shape(framed[1] + before, after + tail, channel, style)
    return None


_decode = json.JSONDecoder().decode  # `json.loads` would guess the encoding of every event first


class Chunk(NamedTuple):
    texts: list[tuple[Channel, str]]
    finish: str | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None
    calls: tuple[str, ...] = ()  # names of the tool calls that begin here


class NoChunk(ValueError):
    """The event is no part of an OpenAI stream; the message quotes it."""


def read(data: bytes) -> Chunk:
    """Raises NoChunk. An event with a role and no text has no texts: it is not the first token."""
    try:
        event = _decode(data.decode())
    except (ValueError, RecursionError):
        raise NoChunk(f"an event that is no JSON: {data[:80].decode(errors='replace')!r}") from None
    if not isinstance(event, dict):
        raise NoChunk(f"an event that is no object: {data[:80].decode(errors='replace')!r}")
    usage = event.get("usage")
    failed = sse.error(event)
    texts: list[tuple[Channel, str]] = []
    calls: list[str] = []
    finish = None
    for choice in event.get("choices") or ():
        if not isinstance(choice, dict):
            raise NoChunk(f"a choice that is no object: {data[:80].decode(errors='replace')!r}")
        finish = choice.get("finish_reason") or finish
        if delta := choice.get("delta"):
            if not isinstance(delta, dict):
                raise NoChunk(f"a delta that is no object: {str(delta)[:80]!r}")
            texts += sse.texts(delta)
            names = (function.get("name") for function in sse.functions(delta))
            calls += [name for name in names if name and isinstance(name, str)]
        elif isinstance(choice.get("text"), str) and choice["text"]:
            texts.append(("content", choice["text"]))
    return Chunk(texts, finish, usage if isinstance(usage, dict) else None, failed, tuple(calls))
