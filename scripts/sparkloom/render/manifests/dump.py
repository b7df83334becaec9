"""Objects as YAML text, the same bytes for the same objects.

Our own writer, for two reasons. YAML readers disagree about plain words (`1e5` is text to one and a number to the API
server's), so everything but plain identifiers is quoted. And it takes a thirteenth of PyYAML's time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_PRINTABLE = re.compile(r"[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*")
_BLOCK = re.compile(r"[^\s](?:[\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*[^\n])?\n")
_ESCAPED = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def to_yaml(objects: Iterable[Mapping[str, Any]]) -> str:
    out: list[str] = []
    for item in objects:
        out.append("---\n")
        _mapping(out, item, "")
    return "".join(out)


def _mapping(out: list[str], value: Mapping[str, Any], indent: str) -> None:
    for key, item in value.items():
        out.append(f"{indent}{_text(key)}:")
        if item and isinstance(item, dict):
            out.append("\n")
            _mapping(out, item, indent + "  ")
        elif item and isinstance(item, list | tuple):
            out.append("\n")
            _sequence(out, item, indent)
        else:
            out.append(f" {_scalar(item, indent)}\n")


def _sequence(out: list[str], value: Iterable[Any], indent: str) -> None:
    """Items stand under their key, without a further step."""
    for item in value:
        start = len(out)
        if item and isinstance(item, dict):
            _mapping(out, item, indent + "  ")
            out[start] = f"{indent}- {out[start][len(indent) + 2 :]}"
        elif item and isinstance(item, list | tuple):
            _sequence(out, item, indent + "  ")
            out[start] = f"{indent}- {out[start][len(indent) + 2 :]}"
        else:
            out.append(f"{indent}- {_scalar(item, indent)}\n")


def _scalar(item: Any, indent: str) -> str:
    """A literal block where that gives back exactly the same text, else one line."""
    if not isinstance(item, str):
        return json.dumps(item)
    if "\n" not in item or not _BLOCK.fullmatch(item):
        return _text(item)
    return "|\n" + "\n".join(f"{indent}  {line}" if line else "" for line in item[:-1].split("\n"))


@lru_cache(maxsize=8192)
def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if _PRINTABLE.fullmatch(text):
        return "'" + text.replace("'", "''") + "'"
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
