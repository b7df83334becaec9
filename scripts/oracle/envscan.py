"""Finds the environment variables that a release reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_READ = re.compile(r"""(?:getenv|environ(?:\.\w+)?|\w*env_var\w*)\s*[(\[]\s*["']([A-Z][A-Z0-9_]+)["']""")
_FLAG = re.compile(r"--[a-z0-9][a-z0-9-]*[a-z0-9]")


def names_read(folder: Path, prefix: str) -> set[str]:
    """Names with this prefix that any file below the folder reads directly, outside the release's own table."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8", errors="replace")
        if prefix in text:
            found.update(name for name in _READ.findall(text) if name.startswith(prefix))
    return found


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
