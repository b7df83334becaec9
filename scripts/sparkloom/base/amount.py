"""Tokens as people write them: 4096, 128k, 1M; a k is 1,024, as context lengths are told. And things by their
number, a share as a bar, seconds as a span."""

from __future__ import annotations

import re

MOST = 1 << 30
CELLS = 16
_UNITS = {"": 1, "k": 1024, "m": 1024 * 1024}


def tokens(text: str) -> int:
    """ValueError says what was found and what to write."""
    match = re.fullmatch(r"(\d{1,10}(?:\.\d{1,3})?)([kKmM]?)", text.strip())
    amount = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if not 1 <= amount <= MOST:
        raise ValueError(f"'{text}' is no number of tokens; write 4096, 128k or 1M")
    return amount


def of(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def bar(share: float) -> str:
    full = int(CELLS * min(1.0, share))
    return f"[{'#' * full}{'.' * (CELLS - full)}]"


def span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
