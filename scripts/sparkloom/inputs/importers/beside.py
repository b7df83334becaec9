"""Files of variables in a recipe's own folder: compose's `.env`, what `env_file` names, what a script sources."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from sparkloom.inputs.importers.containers import SECRET

MOST = 64 << 10  # characters
_NAME = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)")


def variables(recipe: str, named: str) -> dict[str, str]:
    """Of a file of `NAME=value` lines alone; a script says only to a shell what it sets.

    Nothing where the file is in another folder: a stranger's recipe opens no file elsewhere.
    """
    path = Path(recipe).parent / named
    if recipe == "-" or Path(named).parent != Path() or not os.path.isfile(path):  # noqa: PTH113 - a name too long
        return {}
    try:
        with path.open(encoding="utf-8") as file:
            lines = file.read(MOST).splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found: dict[str, str] = {}
    for line in map(str.strip, lines):
        name, equals, value = line.partition("=")
        said = _NAME.fullmatch(name.rstrip())
        if said and equals:
            found[said[1]] = _plain(value)
        elif line and not line.startswith("#"):
            return {}
    return found


def shown(found: Mapping[str, str]) -> dict[str, str]:
    """Those that a command may show: no secrets, and none that refers to others."""
    return {name: value for name, value in found.items() if not (SECRET.search(name) or set(value) & set("$`"))}


def _plain(value: str) -> str:
    """Without its quotes, or without the comment behind it."""
    bare = value.lstrip()
    end = bare.find(bare[0], 1) if bare.startswith(("'", '"')) else -1
    return bare[1:end] if end > 0 else re.split(r"\s#", value, maxsplit=1)[0].strip()
