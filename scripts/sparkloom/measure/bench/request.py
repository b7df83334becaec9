"""One request: what came when, and what became of it."""

from __future__ import annotations

from array import array
from typing import Any

from sparkloom.measure.guard.verdict import Verdict


class Request:
    """`intended`: when the schedule wanted it to start; `sent`: when its bytes went out; in seconds of one clock."""

    def __init__(self, number: int, prompt: str, body: bytes, intended: float, *, guarded: bool = True) -> None:
        self.number, self.prompt, self.body, self.intended, self.guarded = number, prompt, body, intended, guarded
        self.sent = self.ended = self.connect_s = 0.0
        self.retried = 0
        self.error: str | None = None
        self.detail = self.tail = ""
        self.finish: str | None = None
        self.usage: dict[str, Any] | None = None
        self.verdict: Verdict | None = None
        self.calls: list[list[str]] = []  # of each tool call its name, then the pieces of its arguments
        # For every chunk with text: when, how many characters, tokens so far where the engine says it (else -1).
        self.times, self.sizes, self.counted = array("d"), array("l"), array("l")

    @property
    def ok(self) -> bool:
        return self.error is None and bool(self.ended)

    @property
    def over(self) -> bool:
        return bool(self.ended)

    def fail(self, kind: str, detail: str, now: float) -> None:
        if not self.ended:
            self.error, self.detail, self.ended = kind, detail[:300], now
