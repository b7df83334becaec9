"""Questions that want a tool, and whether what came is a call that a program could carry out."""

from __future__ import annotations

import json
from typing import Any

_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}


def _tool(name: str, about: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


TOOLS: list[dict[str, Any]] = [
    _tool("get_tide", "High and low water at a harbour on a day.", {"harbour": _TEXT, "date": _TEXT}),
    _tool(
        "convert",
        "Converts an amount between two units.",
        {"amount": _NUMBER, "from_unit": _TEXT, "to_unit": {"type": "string", "enum": ["kg", "lb", "km", "mi", "l"]}},
    ),
    _tool("book_table", "Books a table.", {"restaurant": _TEXT, "guests": {"type": "integer"}}, {"time": _TEXT}),
]
QUESTIONS = (
    ("tide", "When is high water in Emden on 3 May 2027? Use a tool."),
    ("weight", "How many kilograms are 12.5 lb? Use a tool."),
    ("table", "Book a table for five at the Three Lindens, at half past seven. Use a tool."),
    ("distance", "Convert 88 km to miles with a tool."),
    ("tide-2", "I sail to Saint-Malo on 17 August 2027 and need the tides; look them up."),
    ("table-2", "Two of us want to eat at Harbour View. Reserve it, please; any time will do."),
)
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
