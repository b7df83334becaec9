"""The words that catalogs use for a flag's type, and what each accepts."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from sparkloom.inputs.catalogs.dialect import Dialect

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]+)")


def convert(word: str, text: str, dialect: Dialect) -> object:
    """The value that the engine would make of `text`. ValueError says what was expected."""
    if word == "lora":
        return _lora(text, dialect)
    if word in ("size", "size_or_auto"):
        if word == "size_or_auto" and text.strip().lower() in ("auto", "-1"):
            return -1
        return _size(text, dialect.suffixes)
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
    """The engines take 'nan' and 'inf' too; no setting of theirs means anything by it."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError("a number") from None
    if not math.isfinite(value):
        raise ValueError("a finite number")
    return value


def parse_json(text: str) -> object:
    """ValueError for whatever is no JSON, nesting without end included."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"valid JSON ({error})") from None


def _json_object(text: str) -> object:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return value


def _str_or_json(text: str) -> object:
    return parse_json(text) if re.fullmatch(r"(?s)\s*{.*}\s*", text) else text


def check_keys(value: object, known: Sequence[str]) -> None:
    """`known` names a JSON object's keys; `decode.backend` is a key of the object under `decode`."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        below = [name.split(".", 1)[1] for name in known if name.startswith(f"{key}.")]
        if key not in known and not below:
            close = difflib.get_close_matches(str(key), known, n=1)
            raise ValueError(f"no key '{key}'" + (f" (did you mean {close[0]}?)" if close else ""))
        if below:
            if not isinstance(inner, dict):
                raise ValueError(f"a JSON object under '{key}'")
            check_keys(inner, below)


def _lora(text: str, dialect: Dialect) -> object:
    """name=path or JSON; for some engines a path alone."""
    is_json = re.fullmatch(r"(?s)\s*{.*}\s*", text) is not None
    plain = not is_json if dialect.lora_path else "=" in text and "," not in text
    if plain or not text:
        return text
    value = _json_object(text)
    keys, may = set(value) if isinstance(value, dict) else set(), dialect.lora_may
    if dialect.lora_must - keys or (may is not None and keys - may):
        raise ValueError(f"a JSON object with {' and '.join(sorted(dialect.lora_must))}")
    return value


def _folded(text: str) -> str:
    return text.lower().replace("-", "_")


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


_CONVERTERS: Mapping[str, Callable[[str], object]] = {
    "str": str,
    "int": _int,
    "float": _float,
    "json": parse_json,
    "json_object": _json_object,
    "str_or_json": _str_or_json,
    "folded": _folded,
    "list": _list,
}
TYPES = frozenset({*_CONVERTERS, "lora", "size", "size_or_auto"})
