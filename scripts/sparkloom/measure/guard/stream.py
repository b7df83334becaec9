"""The guard of one stream: batches the text of each channel and asks the detectors.

One of them stands here: characters at random, where no pair comes back and most are no letters. Encoded data is random
too, but it is made of letters and digits; code is full of marks, but its pairs return.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sparkloom.measure.guard.incoherence import IncoherenceDetector
from sparkloom.measure.guard.loops import CounterLoopDetector, LoopDetector
from sparkloom.measure.guard.stagnation import StagnationDetector
from sparkloom.measure.guard.verdict import OK, Symptom, Verdict
from sparkloom.onnode.sse import Channel

BATCH = 64  # characters between two judgements: a few microseconds a token, and no verdict later than this
WINDOW = 1024
_MARK = re.compile(r"[^\w\s]|_")
SYMBOLS = "\u2190"  # arrows, dingbats and pictures begin here


class _Text:
    """One channel."""

    def __init__(self) -> None:
        self._judged = 0
        self._pending: list[str] = []
        self._waiting = 0
        self._loops = LoopDetector()
        self._stagnation, self._incoherence = StagnationDetector(), IncoherenceDetector()
        others = CounterLoopDetector(), self._stagnation, self._incoherence, NoiseDetector()
        self._all = (self._loops, *others)

    @property
    def characters(self) -> int:
        return self._judged + self._waiting

    def feed(self, texts: Sequence[str]) -> tuple[int, Symptom] | None:
        """Which of the texts completes the picture of garbage, and the picture; what is behind it is not looked at."""
        pending, waiting = self._pending, self._waiting
        for place, text in enumerate(texts):
            pending.append(text)
            waiting += len(text)
            if waiting >= BATCH:
                symptom = self._flush()
                if symptom:
                    return place, symptom
                pending, waiting = self._pending, 0
        self._waiting = waiting
        return None

    def _flush(self) -> Symptom | None:
        joined = "".join(self._pending)
        self._judged += len(joined)
        self._pending, self._waiting = [], 0
        pieces = (joined[start : start + 4 * BATCH] for start in range(0, len(joined), 4 * BATCH))
        return next(filter(None, map(self._judge, pieces)), None)

    def _judge(self, batch: str) -> Symptom | None:
        for detector in self._all:
            detector.feed(batch)
        return next((symptom for detector in self._all if (symptom := detector.symptom())), None)

    def finish(self) -> Symptom | None:
        return (self._flush() if self._waiting else None) or self._loops.symptom(ended=True)


class Guard:
    """`feed` every chunk in order; the first verdict that is not None is final. `finish` always gives one."""

    def __init__(self) -> None:
        self._texts: dict[Channel, _Text] = {}
        self._chunks = 0
        self.verdict: Verdict | None = None

    def feed(self, text: str, channel: Channel = "content") -> Verdict | None:
        return self.feed_run((text,), channel)

    def feed_run(self, texts: Sequence[str], channel: Channel) -> Verdict | None:
        """Several chunks of one channel in a row; the verdict names the one of them that decided."""
        if self.verdict is not None:
            return self.verdict
        first = self._chunks
        self._chunks += len(texts)
        own = self._texts.get(channel) or self._texts.setdefault(channel, _Text())
        if stopped := own.feed(texts):
            place, symptom = stopped
            self.verdict = Verdict("garbage", symptom.kind, first + place, own.characters, channel, symptom.why)
        return self.verdict

    def finish(self, usage: Mapping[str, Any] | None = None) -> Verdict:
        """The verdict over the whole stream; `usage` is the engine's own count."""
        for channel, text in self._texts.items():
            if self.verdict is not None:
                break
            symptom = text.finish()
            if symptom:
                at = max(self._chunks - 1, 0)
                self.verdict = Verdict("garbage", symptom.kind, at, text.characters, channel, symptom.why)
        characters = sum(text.characters for text in self._texts.values())
        fine = OK._replace(looked_at=f"{characters:,} characters in {self._chunks:,} pieces")
        self.verdict = self.verdict or self._silent(usage) or fine
        return self.verdict

    def _silent(self, usage: Mapping[str, Any] | None) -> Verdict | None:
        tokens = (usage or {}).get("completion_tokens")
        characters = sum(text.characters for text in self._texts.values())
        if not isinstance(tokens, int) or tokens < 64 or characters >= 0.15 * tokens:
            return None
        why = f"{tokens} tokens were counted and {characters} characters of text came"
        return Verdict("garbage", "no-text", max(self._chunks - 1, 0), characters, None, why)


class NoiseDetector:
    def __init__(self) -> None:
        self._tail = ""
        self._new = 0

    def feed(self, batch: str) -> None:
        self._tail = (self._tail + batch)[-WINDOW:]
        self._new += len(batch)

    def symptom(self) -> Symptom | None:
        if self._new < WINDOW // 2 or len(self._tail) < WINDOW:
            return None
        self._new, text = 0, self._tail
        pictures = [] if text.isascii() else [c for c in text if c >= SYMBOLS and not c.isalnum()]
        if len(pictures) >= 0.6 * WINDOW and len(set(pictures)) >= min(0.4 * len(pictures), 160):
            return Symptom("salad", f"{len(set(pictures))} different symbols in {WINDOW} characters")
        if len(_MARK.findall(text)) < 0.2 * WINDOW:
            return None
        pairs = len(set(pairwise(text))) / (WINDOW - 1)
        if pairs >= 0.85:
            return Symptom(
                "salad", f"{pairs:.0%} of the pairs in {WINDOW} characters are different, and many are marks"
            )
        return None
