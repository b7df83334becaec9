"""A literal of JavaScript as plain data, as SGLang's cookbook keeps its cells. Expressions are refused, not run.

It is respelled as JSON, sign by sign, and the standard library reads that.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

_TOKEN = re.compile(
    r"""(?P<blank>(?:\s|//[^\n]*|/\*.*?\*/)+)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)
    |(?P<number>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))
    |(?P<name>[A-Za-z_$][\w$.-]*)
    |(?P<sign>[][{}:,])""",
    re.DOTALL | re.VERBOSE,
)
_KEY = re.compile(r"(\s|//[^\n]*|/\*.*?\*/)*:", re.DOTALL)
_WORDS = {"true": "true", "false": "false", "null": "null", "undefined": "null"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
DEPTH = 60


class NoLiteral(ValueError):
    """Where the text is no literal; `at` counts characters."""

    def __init__(self, message: str, at: int) -> None:
        self.at = at
        super().__init__(message)


def read(text: str, at: int) -> tuple[Any, int]:
    """The object that begins at `at`, and where it ends."""
    pieces: list[tuple[str, int]] = []  # of JSON, each with where it stands in the text
    depth = 0
    while not pieces or depth > 0:
        match = _TOKEN.match(text, at)
        if match is None or depth > DEPTH:
            raise NoLiteral(f"'{text[at : at + 20]}' is no literal, does not end, or nests too deep", at)
        if match.lastgroup != "blank":
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
            if match[0] in ("}", "]") and pieces and pieces[-1][0] == ",":  # JSON has no comma before an end
                pieces.pop()
            pieces.append((_spelled(text, match), at))
        at = match.end()
    return _parsed(pieces), at


def _spelled(text: str, match: re.Match[str]) -> str:
    """One sign, word, number or text as JSON has it."""
    written = match[0]
    if match.lastgroup == "text":
        return json.dumps(re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), written[1:-1], flags=re.DOTALL))
    if match.lastgroup == "number":
        if "x" in written:
            return str(int(written, 16))
        return written if re.fullmatch(r"-?(0|[1-9]\d*)", written) else repr(float(written))
    if match.lastgroup == "sign":
        return written
    if _KEY.match(text, match.end()):
        return json.dumps(written)
    if written not in _WORDS:
        raise NoLiteral(f"'{text[match.start() : match.start() + 20]}' is no literal", match.start())
    return _WORDS[written]


def _parsed(pieces: list[tuple[str, int]]) -> Any:
    try:
        return json.loads(" ".join(piece for piece, _ in pieces))
    except json.JSONDecodeError as error:
        ends = accumulate(len(piece) + 1 for piece, _ in pieces)
        at = next((place for end, (_, place) in zip(ends, pieces, strict=True) if end > error.pos), pieces[-1][1])
        raise NoLiteral(error.msg.lower(), at) from None
    except ValueError as error:  # a number of more digits than Python reads
        raise NoLiteral(str(error), pieces[0][1]) from None
