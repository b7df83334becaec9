"""Characters at random: no pair of them comes back, and most are no letters.

Encoded data is random too, but it is made of letters and digits; code is full of marks, but its pairs return.
"""

from __future__ import annotations

import re
from itertools import pairwise

from sparkloom.measure.guard.verdict import Symptom

WINDOW = 1024
_MARK = re.compile(r"[^\w\s]|_")
SYMBOLS = "\u2190"  # arrows, dingbats and pictures begin here


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
