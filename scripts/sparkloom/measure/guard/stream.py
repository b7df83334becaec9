"""The guard of one stream: batches the text of each channel and asks the detectors."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from sparkloom.measure.guard.incoherence import IncoherenceDetector
from sparkloom.measure.guard.loops import CounterLoopDetector, LoopDetector
from sparkloom.measure.guard.noise import NoiseDetector
from sparkloom.measure.guard.stagnation import StagnationDetector
from sparkloom.measure.guard.verdict import OK, Symptom, Verdict
from sparkloom.onnode.sse import Channel

BATCH = 64  # characters between two judgements: a few microseconds a token, and no verdict later than this
RHYTHM = 512  # gaps between chunks that tell how fast the stream usually is


class _Text:
    """One channel."""

    def __init__(self) -> None:
        self._judged = 0
        self._pending: list[str] = []
        self._waiting = 0
        self._loops = LoopDetector()
        self._counters = CounterLoopDetector()
        self._stagnation = StagnationDetector()
        self._incoherence = IncoherenceDetector()
        self._all = (self._loops, self._counters, self._stagnation, self._incoherence, NoiseDetector())

    @property
    def characters(self) -> int:
        return self._judged + self._waiting

    def feed(self, text: str) -> Symptom | None:
        """The picture of garbage, where this text completes it."""
        self._pending.append(text)
        self._waiting += len(text)
        return self._flush() if self._waiting >= BATCH else None

    def _flush(self) -> Symptom | None:
        joined = "".join(self._pending)
        self._judged += len(joined)
        self._pending, self._waiting = [], 0
        for start in range(0, len(joined), 4 * BATCH):
            symptom = self._judge(joined[start : start + 4 * BATCH])
            if symptom:
                return symptom
        return None

    def _judge(self, batch: str) -> Symptom | None:
        for detector in self._all:
            detector.feed(batch)
        return next((symptom for detector in self._all if (symptom := detector.symptom())), None)

    def finish(self) -> Symptom | None:
        return (self._flush() if self._waiting else None) or self._loops.symptom(ended=True)


class Guard:
    """`feed` every chunk in order; the first verdict that is not None is final. `finish` always gives one."""

    def __init__(self, *, stall_s: float = 120.0) -> None:
        self._stall_s = stall_s
        self._texts: dict[Channel, _Text] = {}
        self._chunks = 0
        self._last: float | None = None
        self._gaps = array("d")
        self.verdict: Verdict | None = None

    def feed(self, text: str, channel: Channel = "content", t: float | None = None) -> Verdict | None:
        """One chunk; `t` is when it came, in seconds on any steady clock."""
        if self.verdict is not None:
            return self.verdict
        at = self._chunks
        self._chunks += 1
        own = self._texts.get(channel) or self._texts.setdefault(channel, _Text())
        symptom = (None if t is None else self._arrived(t)) or own.feed(text)
        if symptom:
            self.verdict = Verdict("garbage", symptom.kind, at, own.characters, channel, symptom.why)
        return self.verdict

    def _arrived(self, now: float) -> Symptom | None:
        """Had the stream stood still until then?"""
        stalled = self.stalled(now)
        if self._last is not None and len(self._gaps) < RHYTHM:
            self._gaps.append(now - self._last)
        self._last = now
        return stalled

    def stalled(self, now: float) -> Symptom | None:
        """Ask between chunks: has the stream been silent for far longer than its own rhythm?"""
        if self._last is None or now - self._last < self._stall_s:
            return None
        gap, usual = now - self._last, sorted(self._gaps)[len(self._gaps) // 2] if self._gaps else 0.0
        if gap < 50 * usual:
            return None
        return Symptom("stall", f"nothing for {gap:.0f} s after a chunk every {usual:.2f} s")

    def finish(self, usage: Mapping[str, Any] | None = None) -> Verdict:
        """The verdict over the whole stream; `usage` is the engine's own count."""
        for channel, text in self._texts.items():
            if self.verdict is not None:
                break
            symptom = text.finish()
            if symptom:
                at = max(self._chunks - 1, 0)
                self.verdict = Verdict("garbage", symptom.kind, at, text.characters, channel, symptom.why)
        self.verdict = self.verdict or self._silent(usage) or OK
        return self.verdict

    def _silent(self, usage: Mapping[str, Any] | None) -> Verdict | None:
        tokens = (usage or {}).get("completion_tokens")
        characters = sum(text.characters for text in self._texts.values())
        if not isinstance(tokens, int) or tokens < 64 or characters >= 0.15 * tokens:
            return None
        why = f"{tokens} tokens were counted and {characters} characters of text came"
        return Verdict("garbage", "no-text", max(self._chunks - 1, 0), characters, None, why)
