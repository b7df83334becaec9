"""Finds the environment variables that a release reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_READ = re.compile(r"""(?:getenv|environ(?:\.\w+)?|\w*env_var\w*)\s*[(\[]\s*["']([A-Z][A-Z0-9_]+)["']""")
_NOTICE = re.compile(r"""["']([A-Z][A-Z0-9_]+) (has been removed|is no longer supported|is deprecated)([^"'\n]*)""")
_FLAG = re.compile(r"--[a-z0-9][a-z0-9-]*[a-z0-9]")


def names_read(folder: Path, prefix: str) -> dict[str, dict[str, Any]]:
    """Names with this prefix that any file below the folder reads directly, outside the release's own table.

    A name whose only reader tells people that it is gone is marked so.
    """
    names: dict[str, dict[str, Any]] = {}
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8", errors="replace") if "test" not in path.parts else ""
        if prefix not in text:
            continue
        for name in _READ.findall(text):
            if name.startswith(prefix):
                names.setdefault(name, {})
        for name, verb, rest in _NOTICE.findall(text):
            if name.startswith(prefix):
                gone = verb != "is deprecated"
                names[name] = {"removed": True} if gone else {"deprecated": flag_in(rest) or True}
    return names


def tidy(facts: dict[str, Any]) -> dict[str, Any]:
    """Without a default that says nothing or that belongs to this machine (a path below somebody's home or /tmp)."""
    default = facts.get("default")
    keep = isinstance(default, bool | int | float) or (
        isinstance(default, str) and default and not default.startswith("/")
    )
    return facts if keep else {key: value for key, value in facts.items() if key != "default"}


def flag_in(text: str) -> str:
    """The first flag that a sentence names, or nothing."""
    match = _FLAG.search(text)
    return match.group() if match else ""
