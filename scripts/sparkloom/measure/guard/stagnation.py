"""Text that says nothing new: a few phrases shuffled for ever, or one phrase flooding everything.

Every run of K characters is counted over a sliding history. Text that goes on saying things meets
runs it has not seen: a re-shown code block brings second copies, a table brings fresh cells. Text that
is stuck meets only runs that it has seen four times and more.
"""

from __future__ import annotations

from array import array
from collections import deque

from sparkloom.measure.guard.verdict import Symptom

K = 8
HISTORY = 16_384  # characters whose runs are remembered
SLOTS = 1 << 17  # 128 KiB of counters: the chance that unrelated runs share one slot four times is about 1e-5
WINDOW = 1536  # characters that a judgement looks back over
SETTLED = 4
STAGNANT = 0.97
STAGNANT_CODE = 0.995  # generated code is written in few words
FLOODED = 0.65


class StagnationDetector:
    def __init__(self) -> None:
        self._counts = bytearray(SLOTS)
        self._history: deque[array[int]] = deque()  # the slots of each batch
        self._remembered = 0
        self._carry = ""
        self._blocks: deque[tuple[int, int, int, str]] = deque()
        self._size = self._settled = self._flooding = 0

    def feed(self, batch: str) -> None:
        text = self._carry + batch
        self._carry = text[-(K - 1) :]
        settled = flooding = 0
        counts, mask = self._counts, SLOTS - 1
        slots = array("i", [hash(run) & mask for run in [text[at : at + K] for at in range(len(text) - K + 1)]])
        full = []
        for slot in slots:
            seen = counts[slot]
            if seen >= SETTLED:
                settled += 1
                if seen >= 8:
                    flooding += 1
                    if seen == 255:
                        full.append(slot)
                        continue
            counts[slot] = seen + 1
        self._remember(len(slots), settled, flooding, batch)
        for slot in full:
            slots.remove(slot)
        self._history.append(slots)
        self._remembered += len(slots)
        while self._remembered - len(self._history[0]) >= HISTORY:
            old = self._history.popleft()
            self._remembered -= len(old)
            for slot in old:
                counts[slot] -= 1

    def _remember(self, size: int, settled: int, flooding: int, batch: str) -> None:
        self._blocks.append((size, settled, flooding, batch))
        self._size += size
        self._settled += settled
        self._flooding += flooding
        while self._size - self._blocks[0][0] >= WINDOW:
            old = self._blocks.popleft()
            self._size -= old[0]
            self._settled -= old[1]
            self._flooding -= old[2]

    def symptom(self) -> Symptom | None:
        if self._size < WINDOW or self._settled < FLOODED * self._size:
            return None
        settled, flooding = self._settled / self._size, self._flooding / self._size
        text = "".join(block[3] for block in self._blocks)
        if settled >= STAGNANT:
            return self._stagnant(text, settled)
        if flooding >= FLOODED and _is_running_prose(text):
            return Symptom("flood", f"{flooding:.0%} of the last {self._size} characters repeat the same phrases")
        return None

    def _stagnant(self, text: str, share: float) -> Symptom | None:
        letters = sum(character.isalpha() for character in text)
        digits = sum(character.isdigit() for character in text)
        if digits and digits >= 0.2 * sum(not character.isspace() for character in text):
            return None  # grids of digits are data
        marks = sum(character in '{}()[]<>=;_/\\|"$#@&*+' for character in text)
        if share < STAGNANT_CODE and marks >= 0.04 * len(text):
            return None
        kind = "stagnation" if letters >= 0.3 * len(text) else "low-entropy"
        return Symptom(kind, f"{share:.0%} of the last {len(text)} characters had been said four times and more")


def _is_running_prose(text: str) -> bool:
    """Sentences in a row: not a list with one item a line, not a table, not numbers."""
    digits = sum(character.isdigit() for character in text)
    plain = sum(character.isalpha() or character in " ,.!?;:'\u2019-" for character in text)
    return plain >= 0.95 * len(text) and digits <= 0.02 * len(text) and text.count("\n") * 300 <= len(text)
