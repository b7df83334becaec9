"""One event of an OpenAI stream: the text in it by channel, why it ended, and what the engine counted."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sparkloom.onnode import sse
from sparkloom.onnode.sse import Channel

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
