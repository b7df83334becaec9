"""The words that catalogs use for a flag's type, and what each accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

_SUFFIXES: Mapping[str, Mapping[str, int]] = {
    # vLLM: k is 1000 and K is 1024. SGLang: k is 1000 and Ki is 1024. Same idea, other letters.
    "vllm": {s: 1000 ** (i + 1) for i, s in enumerate("kmgt")} | {s: 1024 ** (i + 1) for i, s in enumerate("KMGT")},
    "sglang": {s: 1000 ** (i + 1) for i, s in enumerate("kMGT")}
    | {s: 1024 ** (i + 1) for i, s in enumerate(("Ki", "Mi", "Gi", "Ti"))},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]+)")


def convert(word: str, text: str, engine: str) -> object:
    """The value that the engine would make of `text`. ValueError says what was expected."""
    if word in ("size", "size_or_auto"):
        if word == "size_or_auto" and text.strip().lower() in ("auto", "-1"):
            return -1
        return _size(text, _SUFFIXES.get(engine, {}))
    return _CONVERTERS[word](text)


def _size(text: str, suffixes: Mapping[str, int]) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return _int(text)
    number, suffix = match.groups()
    if suffix not in suffixes:
        raise ValueError(f"a whole number, with one of {' '.join(suffixes)} behind it if you like")
    if "." in number and suffixes[suffix] % 1000:
        raise ValueError(f"a whole number before {suffix}")
    return int(Decimal(number) * suffixes[suffix])


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"valid JSON ({error})") from None


def _json_object(text: str) -> object:
    value = _json(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return value


def _str_or_json(text: str) -> object:
    return _json(text) if re.fullmatch(r"(?s)\s*{.*}\s*", text) else text


def _folded(text: str) -> str:
    return text.lower().replace("-", "_")


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


_CONVERTERS: Mapping[str, Callable[[str], object]] = {
    "str": str,
    "int": _int,
    "float": _float,
    "json": _json,
    "json_object": _json_object,
    "str_or_json": _str_or_json,
    "folded": _folded,
    "list": _list,
}
TYPES = frozenset({*_CONVERTERS, "size", "size_or_auto"})
