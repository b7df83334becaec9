"""Which script a letter belongs to, as far as the guard needs it."""

from __future__ import annotations

from bisect import bisect_right

# First code point of each range; letters of one group may stand beside each other in one word.
_RANGES = (
    (0x0000, "latin"), (0x0370, ""), (0x0400, "cyrillic"), (0x0530, "armenian"), (0x0590, "hebrew"),
    (0x0600, "arabic"), (0x0700, ""), (0x0900, "indic"), (0x0E00, "thai"), (0x0F00, "indic"), (0x1000, "indic"),
    (0x10A0, "georgian"), (0x1100, "hangul"), (0x1200, "ethiopic"), (0x1400, ""), (0x1780, "indic"), (0x1800, ""),
    (0x1E00, "latin"), (0x1F00, ""), (0x3040, "cjk"), (0x3130, "hangul"), (0x3190, "cjk"), (0xA000, ""),
    (0xAC00, "hangul"), (0xD7B0, ""), (0xF900, "cjk"), (0xFB00, ""), (0xFB1D, "hebrew"), (0xFB50, "arabic"),
    (0xFE00, ""), (0x20000, "cjk"), (0x32000, ""),
)  # fmt: skip
_STARTS = [start for start, _ in _RANGES]
# Loan words, units and product names: these pairs meet inside sane words.
_FRIENDS = {frozenset(pair) for pair in (("latin", "cjk"), ("latin", "hangul"), ("cjk", "hangul"), ("latin", "thai"))}


def script(character: str) -> str:
    """Name of the script, or nothing for characters that go with every script."""
    return _RANGES[bisect_right(_STARTS, ord(character)) - 1][1] if character.isalpha() else ""


def is_cjk(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff"


def exotic_joins(text: str) -> tuple[int, int]:
    """Characters, and places where two scripts that never share a word stand side by side."""
    joins = 0
    before = ""
    for character in text:
        now = script(character)
        if now and before and now != before and frozenset((now, before)) not in _FRIENDS:
            joins += 1
        before = now
    return len(text), joins
