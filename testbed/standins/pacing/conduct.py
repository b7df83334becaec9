"""How one answer is given: the knobs of the pacing server and the events that follow from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from testbed.standins.pacing import samples

WORDS = (
    "the", "rail", "carries", "what", "four", "small", "machines", "must", "tell", "each", "other", "before", "any",
    "token", "can", "leave", "and", "so", "its", "speed", "bounds", "how", "long", "people", "wait", "for", "answers",
    "to", "hard", "questions", "about", "weather", "music", "bridges", "tides", "or", "soil", "in", "far", "valleys",
)  # fmt: skip


@dataclass(frozen=True)
class Conduct:
    """Knobs; `-1` or empty means: not at all."""

    ttft: float = 0.2  # seconds from the whole request to the first text
    rate: float = 50.0  # tokens a second after it
    tokens: int = -1  # tokens of the answer; -1: the request's max_tokens
    per_chunk: int = 1  # tokens in a chunk; a chunk comes every per_chunk / rate seconds
    first_chunk: int = -1  # tokens in the first chunk; -1: as per_chunk
    reasoning: int = 0  # so many tokens are reasoning_content first
    role: int = 1  # a chunk with the role and no text, at once
    usage: int = 1  # the usage chunk, where it is asked for
    counts: int = 0  # usage with every chunk
    prose: int = 0  # 1: sentences instead of words at random, so that a long answer is no garbage
    tail: int = 0  # tokens that are counted and have no text (an end token)
    stall_after: int = -1  # after so many tokens nothing more comes, the connection stays
    cut_after: int = -1  # after so many tokens the connection is closed
    status: int = 200  # 429, 500, ...: an error instead of an answer
    error_after: int = -1  # after so many tokens an error event
    garbage: str = ""  # flood, loop, bytes: "!!!!", a phrase for ever, or no HTTP at all
    slow_headers: float = 0.0  # seconds between the first and the last byte of the headers; less than half of ttft
    keep_alive: int = 1  # 0: closes after every answer; 2: closes idle connections after 0.2 s
    split: int = 0  # send every event in pieces of so many bytes
    ping: float = 0.0  # a comment every so many seconds, also while it stalls

    @classmethod
    def of(cls, words: Iterator[str] | list[str], base: Conduct | None = None) -> Conduct:
        """`ttft=0.1 rate=100` over a base; ValueError names the unknown word."""
        known = {field.name: str(field.type) for field in fields(cls)}
        values = dict(vars(base)) if base else {}
        for word in words:
            name, _, text = word.partition("=")
            if name not in known:
                raise ValueError(f"{name}: no such knob; known: {', '.join(known)}")
            values[name] = {"int": int, "float": float}.get(known[name], str)(text)
        return cls(**values)

    def schedule(self, most: int) -> Iterator[tuple[float, int]]:
        """(seconds after the request, tokens) of every chunk with text."""
        left = self.tokens if self.tokens >= 0 else most
        at, size = self.ttft, self.first_chunk if self.first_chunk > 0 else self.per_chunk
        while left > 0:
            yield at, min(size, left)
            left -= size
            at, size = at + self.per_chunk / self.rate, self.per_chunk


def text(conduct: Conduct, number: int, index: int, count: int) -> str:
    """Tokens `index` to `index + count` of answer `number`: every token is a word and a blank."""
    if conduct.garbage == "flood":
        return "!" * count
    if conduct.garbage == "loop":
        phrase = ("so", "it", "is", "and")
        return "".join(phrase[(index + i) % 4] + " " for i in range(count))
    if conduct.prose:
        words = _prose(number)
        return "".join(words[i % len(words)] for i in range(index, index + count))
    chosen = []
    for i in range(index, index + count):
        mixed = (i * 2654435761 + number * 40503 + (i * i % 7919) * 97) & 0xFFFFFFFF
        chosen.append(WORDS[(mixed >> 7) % len(WORDS)] + " ")
    return "".join(chosen)


@lru_cache(maxsize=256)
def _prose(number: int) -> list[str]:
    return re.findall(r"\S+\s*", samples.make("prose", number, 24_000))


def event(model: str, delta: dict[str, Any] | None, finish: str | None, usage: dict[str, int] | None) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    data: dict[str, Any] = {
        "id": "pacing", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": choices,
    }  # fmt: skip
    if usage:
        data["usage"] = usage
    return b"data: " + json.dumps(data).encode() + b"\n\n"
