"""Reads a recorded stream: one JSON object a line, in the order received."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.base.errors import InputError
from sparkloom.measure.guard.stream import Guard
from sparkloom.measure.guard.verdict import Verdict
from sparkloom.onnode import sse
from sparkloom.onnode.sse import Channel

EXPECTED = (
    'expected {"content": text}, {"reasoning_content": text} or {"usage": {"completion_tokens": n}}, '
    "or a chunk of the OpenAI stream"
)
_TEXTS = tuple(key for _, keys in sse.SPELLINGS for key in keys)


def judge_file(name: str) -> dict[str, Any]:
    """Verdict over a file of JSON lines, or over standard input for `-`."""
    if name == "-":
        return judge_stream(sys.stdin, name="standard input").as_dict()
    try:
        with Path(name).open(encoding="utf-8") as lines:
            return judge_stream(lines, name=name).as_dict()
    except OSError as error:
        message = f"cannot be read: {error.strerror}; expected a recorded stream as JSON lines"
        raise InputError.single(name, message, rule="unreadable") from None


def judge_stream(lines: Iterable[str], *, name: str = "stream") -> Verdict:
    """Verdict over recorded lines. All of them are read and checked, also those after the verdict."""
    guard, ending = Guard(), Ending()
    usage: dict[str, Any] | None = None
    for record in _records(ending.read(lines), name):
        ending.failed = ending.failed or sse.error(record)
        for channel, text in _texts(record):
            guard.feed(text, channel)
        if isinstance(record.get("usage"), dict):
            usage = record["usage"]
    verdict = guard.finish(usage)
    return verdict if not verdict.ok else ending.verdict() or verdict


class Ending:
    """How a recorded stream ended; only one that was kept as it came (`data: ...`) can lack its [DONE]."""

    def __init__(self) -> None:
        self.failed: str | None = None
        self._raw = self._done = self._named = False

    def read(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines as records; an event that is called an error has data that says so."""
        for line in lines:
            field, _, value = line.strip().removeprefix("\ufeff").partition(":")
            if field == "data":
                self._raw, self._done = True, self._done or value.strip() == sse.DONE.decode()
            elif field == "event":
                self._named = value.strip() == "error"
            if field == "error" or (field == "data" and self._named):
                self._named = False
                yield sse.named(value.strip().encode()).decode()
            else:
                yield line

    def verdict(self) -> Verdict | None:
        if self.failed:
            return Verdict("cut", "engine-error", why=self.failed)
        if self._raw and not self._done:
            return Verdict("cut", "no-end", why="the stream ended without [DONE]")
        return None


def _records(lines: Iterable[str], name: str) -> Iterator[dict[str, Any]]:
    number, seen = 0, False
    try:
        for number, line in enumerate(lines, 1):
            text = line.strip().removeprefix("\ufeff").removeprefix("data:").strip()
            if not text or text == sse.DONE.decode() or text.startswith((":", "event:")):
                continue
            seen = True
            yield _record(text, name, number)
    except UnicodeDecodeError as error:
        raise InputError.single(name, f"is no UTF-8 text: {error}", line=number + 1, rule="unreadable") from None
    if not seen:
        raise InputError.single(name, f"is empty; {EXPECTED}", rule="empty-input")


def _record(text: str, name: str, number: int) -> dict[str, Any]:
    record = json_text.parse(text, name, EXPECTED, number)
    if not isinstance(record, dict):
        message = f"found {type(record).__name__}; {EXPECTED}"
        raise InputError.single(name, message, line=number, rule="wrong-type")
    problem = _problem(record)
    if problem:
        raise InputError.single(name, f"{problem}; {EXPECTED}", line=number, rule="wrong-type")
    return record


def _problem(record: dict[str, Any]) -> str | None:
    """What is wrong with a record, if anything. Unknown extra keys are fine, a record of only those is not."""
    known = {"usage", "choices", "error", "role", *_TEXTS}
    if record and not known & record.keys() and "object" not in record:
        return f"unknown keys {', '.join(sorted(record)[:4])}"
    for key in _TEXTS:
        value = record.get(key)
        if value is not None and not isinstance(value, str):
            return f"{key} is {type(value).__name__}, not text"
    usage = record.get("usage")
    if usage is not None and not isinstance(usage, dict):
        return f"usage is {type(usage).__name__}, not an object"
    if record.get("choices") is not None and not isinstance(record["choices"], list):
        return f"choices is {type(record['choices']).__name__}, not a list"
    return None


def _texts(record: dict[str, Any]) -> Iterator[tuple[Channel, str]]:
    """The pieces of text in a record, flat or in the shape of the OpenAI stream."""
    yield from sse.texts(record)
    for choice in record.get("choices") or ():
        if not isinstance(choice, dict):
            continue
        if isinstance(choice.get("text"), str) and choice["text"]:
            yield "content", choice["text"]
        for part in ("delta", "message"):
            if isinstance(choice.get(part), dict):
                yield from sse.texts(choice[part])
