"""Questions that want a tool, and whether what came is a call that a program could carry out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE = json.loads(Path(__file__).with_name("tools.json").read_text(encoding="utf-8"))
TOOLS: list[dict[str, Any]] = _FILE["tools"]
QUESTIONS: list[tuple[str, str]] = list(_FILE["questions"].items())
_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "number": (int, float), "integer": (int,)}


def judge(calls: list[list[str]]) -> str:
    """Empty where every call is one that could be carried out; else what is wrong with the first that is not."""
    if not calls:
        return "no tool was called"
    return next(filter(None, (_wrong(name, "".join(pieces)) for name, *pieces in calls)), "")


def _wrong(name: str, arguments: str) -> str:
    known = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    if name not in known:
        return "no tool has that name"
    try:
        given = json.loads(arguments)
    except ValueError:
        return "arguments are no JSON"
    if not isinstance(given, dict):
        return "arguments are no object"
    properties = known[name]["properties"]
    if any(key not in given for key in known[name]["required"]):
        return "an argument is missing"
    if any(key not in properties for key in given):
        return "an argument that the tool has not"
    return next(filter(None, (_value(properties[key], value) for key, value in given.items())), "")


def _value(schema: dict[str, Any], value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, _KINDS[schema["type"]]):
        return "an argument of another type"
    return "" if value in schema.get("enum", (value,)) else "a value that the tool does not list"
