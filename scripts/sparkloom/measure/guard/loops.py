"""Exact loops of any period, and loops in which only a number changes.

The last NEEDLE characters are searched for in the recent text. Where they stand before, the distance is
a candidate period; from then on each batch is compared with the text one period back. Both are single
string operations over a bounded window, so the cost per character does not depend on the stream's length.
"""

from __future__ import annotations

import re

from sparkloom.base.visible import cut
from sparkloom.measure.guard.verdict import Symptom

WINDOW = 12_288  # the longest period that can be seen is about a third of this
NEEDLE = 96
# Characters that people draw lines and leaders with.
RULES = set("-=_*#~.+—·• \t\n").union(map(chr, range(0x2500, 0x25A0)))
_DIGITS = re.compile(r"\d+")
COUNTED_REPEATS = 120  # "99 bottles of beer" has 99 verses


class LoopDetector:
    """Feed batches of text; `symptom()` after each."""

    def __init__(self) -> None:
        self._tail = ""
        self._period = 0
        self._run = 0  # how many characters agree with those one period before

    def feed(self, batch: str) -> None:
        tail = self._tail + batch
        self._tail = tail if len(tail) <= 2 * WINDOW else tail[-WINDOW:]
        if self._period and self._continues(len(batch)):
            self._run += len(batch)
        else:
            self._search()

    def _continues(self, count: int) -> bool:
        tail, period = self._tail, self._period
        return len(tail) >= count + period and tail[-count:] == tail[-count - period : -period]

    def _search(self) -> None:
        tail = self._tail
        self._period = self._run = 0
        if len(tail) <= NEEDLE:
            return
        at = tail.rfind(tail[-NEEDLE:], max(0, len(tail) - WINDOW), len(tail) - 1)
        if at >= 0:
            self._period = len(tail) - NEEDLE - at
            self._run = agreement(tail, self._period)

    @property
    def unit(self) -> str:
        return self._tail[-self._period :] if self._period else ""

    @property
    def span(self) -> int:
        """Characters that the loop covers so far; 0 outside of one."""
        return self._run + self._period if self._period else 0

    def symptom(self, *, ended: bool = False) -> Symptom | None:
        """A loop long enough to be one. A stream that ends inside a loop needs a little less of it."""
        if not self._period or self.span < 160:
            return None
        unit = self.unit
        if self.span < needed(unit) * (0.85 if ended else 1.0):
            return None
        times = self.span // self._period
        return Symptom("loop", f"{self._period} characters repeated {times} times: {shown(unit)}")


class CounterLoopDetector:
    """The same sentence again and again with only its numbers changing.

    Lists, tables, logs and songs do that, so it counts only for prose, and only beyond 120 repeats.
    """

    def __init__(self) -> None:
        self._loop = LoopDetector()
        self._digit = False

    def feed(self, batch: str) -> None:
        plain = _DIGITS.sub("0", batch)
        if self._digit and plain.startswith("0"):
            plain = plain[1:]  # a number that went on from the batch before
        self._digit = batch[-1:].isdigit()
        if plain:
            self._loop.feed(plain)

    def symptom(self) -> Symptom | None:
        unit = self._loop.unit
        if "0" not in unit or self._loop.span < COUNTED_REPEATS * len(unit) or not is_prose(unit):
            return None
        times = self._loop.span // len(unit)
        return Symptom("loop", f"one sentence with only a number changing, {times} times: {shown(unit)}")


def agreement(text: str, period: int) -> int:
    """How many characters at the end of `text` equal those `period` characters before them."""
    limit, step, agreed = len(text) - period, 512, 0
    while step:
        end = len(text) - agreed
        if agreed + step <= limit and text[end - step : end] == text[end - step - period : end - period]:
            agreed += step
        else:
            step //= 2
    return agreed


def needed(unit: str) -> int:
    """Characters that a loop of this unit must cover to be garbage."""
    period = len(unit)
    letters = any(character.isalpha() for character in unit)
    if set(unit) <= RULES:
        return 480 if period < 40 else max(1200, 16 * period)  # ruled lines, blank grids
    if any(character.isdigit() for character in unit) and not _prose_letters(unit):
        return 1200 if period == 1 else max(2400, 8 * period)  # zero matrices, hexadecimal bytes, number columns
    if not letters:
        return 200 if period == 1 else max(480, 14 * period)
    if period == 1:
        return 480 if unit == "A" else 200  # base64 writes zero bytes as A
    return max(480, _repeats(period) * period) * (2 if is_row(unit) and period <= 200 else 1)


def _repeats(period: int) -> int:
    steps = ((40, 14), (100, 12), (250, 7), (600, 5), (1500, 4))
    return next((repeats for longest, repeats in steps if period <= longest), 3)


def is_row(unit: str) -> bool:
    """Cells of a table, lines of code or data: these repeat more often than sentences do."""
    return unit.count("|") >= 2 or unit.count("\t") >= 2 or any(mark in unit for mark in ("{", "}", "();", "</", '":'))


def is_prose(unit: str) -> bool:
    words = [word for word in unit.split() if word.isalpha() or word[:-1].isalpha()]
    return len(words) >= 4 and not is_row(unit) and _prose_letters(unit)


def _prose_letters(unit: str) -> bool:
    return sum(character.isalpha() or character == " " for character in unit) >= 0.7 * len(unit)


def shown(unit: str) -> str:
    return repr(cut(unit, 48))
