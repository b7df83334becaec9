"""A literal of JavaScript as plain data, as SGLang's cookbook keeps its cells. Expressions are refused, not run."""

from __future__ import annotations

import re
from typing import Any

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$.-]*")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
DEPTH = 60


class NoLiteral(ValueError):
    """Where the text is no literal; `at` counts characters."""

    def __init__(self, message: str, at: int) -> None:
        self.at = at
        super().__init__(message)


def read(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at `at`, and where it ends."""
    return _value(text, at, 0)


def _blank(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    at = _blank(text, at)
    character = text[at : at + 1]
    if depth > DEPTH or not character:
        raise NoLiteral("ends before its value, or nests too deep", at)
    if character == "{":
        return _object(text, at + 1, depth)
    if character == "[":
        return _array(text, at + 1, depth)
    if character in "\"'`":
        return _string(text, at + 1, character)
    if number := _NUMBER.match(text, at):
        written = number[0]
        return (
            int(written, 0)
            if re.fullmatch(r"-?(0x[\da-fA-F]+|\d+)", written) and not re.fullmatch(r"-?0\d+", written)
            else float(written)
        ), number.end()
    name = _NAME.match(text, at)
    if name and name[0] in _WORDS:
        return _WORDS[name[0]], name.end()
    raise NoLiteral(f"'{text[at : at + 20]}' is no literal", at)


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    while True:
        at = _blank(text, at)
        if text.startswith("}", at):
            return result, at + 1
        if text[at : at + 1] in ('"', "'"):
            key, at = _string(text, at + 1, text[at])
        elif match := _NAME.match(text, at):
            key, at = match[0], match.end()
        else:
            raise NoLiteral(f"'{text[at : at + 20]}' is no key", at)
        at = _blank(text, at)
        if not text.startswith(":", at):
            raise NoLiteral(f"no colon behind '{key}'", at)
        result[key], at = _value(text, at + 1, depth + 1)
        at = _comma(text, at, "}")


def _array(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    result: list[Any] = []
    while True:
        at = _blank(text, at)
        if text.startswith("]", at):
            return result, at + 1
        value, at = _value(text, at, depth + 1)
        result.append(value)
        at = _comma(text, at, "]")


def _comma(text: str, at: int, end: str) -> int:
    at = _blank(text, at)
    if text.startswith(",", at):
        return at + 1
    if not text.startswith(end, at):
        raise NoLiteral(f"expected , or {end}", at)
    return at


def _string(text: str, at: int, quote: str) -> tuple[str, int]:
    parts: list[str] = []
    while at < len(text) and text[at] != quote:
        if text[at] == "\\":
            following = text[at + 1 : at + 2]
            parts.append(_ESCAPES.get(following, following))
            at += 2
        else:
            parts.append(text[at])
            at += 1
    if at >= len(text):
        raise NoLiteral("a text does not end", at)
    return "".join(parts), at + 1
