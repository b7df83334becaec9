"""JSON that somebody else wrote: read, or refused by name and place. And ours: read, or nothing is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError


def load(path: Path, expected: str) -> Any:
    """What a file holds; `expected` says in a refusal what should be there."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError.single(str(path), f"cannot be read: {error.strerror}; {expected}", rule="unreadable") from None
    except UnicodeDecodeError as error:
        raise InputError.single(str(path), f"is no UTF-8 text: {error}", rule="unreadable") from None
    return parse(text, str(path), expected)


def parse(text: str | bytes, file: str, expected: str, line: int = 1) -> Any:
    """`line`: where the text begins in the file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        why, line, column = error.msg, line + error.lineno - 1, error.colno
    except (ValueError, RecursionError):
        why, column = "no UTF-8, nested too deep, or an endless number", 1
    raise InputError.single(file, f"not valid JSON ({why}); {expected}", line=line, column=column, rule="bad-json")


def mapping(text: str | bytes | None) -> dict[str, Any]:
    """What was kept as a mapping; empty where nothing was, or something else."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def kept(file: Path) -> dict[str, Any]:
    """Likewise of a file, which need not be there."""
    try:
        return mapping(file.read_bytes())
    except OSError:
        return {}
