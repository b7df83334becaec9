"""What `sparkloom export` writes beside plain commands: a block of comments with the facts that no command holds."""

from __future__ import annotations

import re
from typing import Any

from sparkloom.base import document

MARK = "#| "
_LINES = re.compile(r"^#\| ?(.*)$", re.MULTILINE)


def read(text: str, name: str) -> dict[str, Any]:
    lines = _LINES.findall(text)
    if not lines:
        return {}
    data = document.parse("\n".join(lines) + "\n", f"{name}, its lines with {MARK.strip()}").data
    return dict(data)


def written(text: str) -> str:
    """The block, of YAML text."""
    return "".join(f"{MARK}{line}".rstrip() + "\n" for line in text.splitlines())
