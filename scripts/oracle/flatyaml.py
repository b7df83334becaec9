"""`yaml.safe_load` for files of `key: value` lines, where no YAML library is at hand: a container of the test bed.

A value is JSON or one plain word. Anything else is refused, so nothing is ever read otherwise than YAML would.
"""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import IO, Any

LINE = re.compile(r"([A-Za-z][\w-]*): +(\S.*?)\s*")
WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")


class NotFlat(ValueError):
    """More than `key: value` lines."""


def safe_load(source: str | IO[str]) -> dict[str, Any]:
    text = source if isinstance(source, str) else source.read()
    values: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise NotFlat(f"line {number}: expected `key: value`")
        values[match[1]] = _value(match[2], number)
    return values


def _value(text: str, number: int) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        if WORD.fullmatch(text) and text.lower() not in ("yes", "no", "on", "off", "true", "false", "null"):
            return text
        raise NotFlat(f"line {number}: expected JSON or a plain word") from None


module = SimpleNamespace(safe_load=safe_load, YAMLError=ValueError, SafeLoader=None)
