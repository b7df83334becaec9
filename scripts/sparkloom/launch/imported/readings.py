"""Words behind a flag as a profile writes its value, and how `engine.fork` says what such a flag takes."""

from __future__ import annotations

import json
import re
from typing import Any

from sparkloom.inputs.catalogs.argv import Use
from sparkloom.inputs.catalogs.catalog import Flag


def text_of(use: Use) -> str:
    return "true" if not use.flag.takes_value else " ".join(use.values)


def of(flag: Flag, values: list[str]) -> Any:
    """As a profile writes it: numbers and JSON as such, words as they stand."""
    if not flag.takes_value:
        return True
    if flag.many:
        return [_typed(flag, value) for value in values]
    return _typed(flag, values[0]) if values else True


def _typed(flag: Flag, text: str) -> Any:
    try:
        if flag.type == "int":
            return int(text)
        if flag.type == "float":
            return float(text)
        if flag.type in ("size", "size_or_auto") and text.isdigit():
            return int(text)
        if flag.type in ("json", "json_object", "str_or_json"):
            content = json.loads(text)
            return content if isinstance(content, dict) else text
    except (ValueError, RecursionError):
        return text
    return text


def plain(values: list[str]) -> Any:
    """The value of a flag that no catalog has, by its looks."""
    if not values:
        return True
    read = [_looks(value) for value in values]
    return read[0] if len(read) == 1 else read


def _looks(text: str) -> Any:
    if re.fullmatch(r"-?\d{1,15}", text) and str(int(text)) == text:
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return content if isinstance(content, dict) else text


def form(value: Any, further: bool = False) -> Any:
    """How `engine.fork` says what a flag takes."""
    if value is True:
        return "switch"
    if isinstance(value, dict):
        return "json"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return [value] if further and isinstance(value, str) else "text"


def same(content: Any, text: str | None) -> bool:
    """Whether a file holds the mapping that a command line would say in JSON."""
    try:
        return text is not None and bool(json.loads(text) == content)
    except (ValueError, RecursionError):
        return False
