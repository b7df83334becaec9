"""One event of an OpenAI stream: the text in it by channel, why it ended, and what the engine counted."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sparkloom.measure.guard.verdict import Channel
from sparkloom.onnode import sse

_decode = json.JSONDecoder().decode  # `json.loads` would guess the encoding of every event first
_CHANNELS: tuple[tuple[str, Channel], ...] = (
    ("reasoning_content", "reasoning"),
    ("reasoning", "reasoning"),
    ("content", "content"),
)


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
            _texts(delta, texts, calls)
        elif isinstance(choice.get("text"), str) and choice["text"]:
            texts.append(("content", choice["text"]))
    return Chunk(texts, finish, usage if isinstance(usage, dict) else None, failed, tuple(calls))


def _texts(delta: Any, texts: list[tuple[Channel, str]], calls: list[str]) -> None:
    if not isinstance(delta, dict):
        raise NoChunk(f"a delta that is no object: {str(delta)[:80]!r}")
    reasoned = False
    for key, channel in _CHANNELS:
        value = delta.get(key)
        if value and isinstance(value, str) and not (channel == "reasoning" and reasoned):
            reasoned = channel == "reasoning"  # some engines send both spellings
            texts.append((channel, value))
    for call in delta.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str) and function["name"]:
            calls.append(function["name"])
        if isinstance(function, dict) and isinstance(function.get("arguments"), str) and function["arguments"]:
            texts.append(("tool", function["arguments"]))
