"""Files of variables in a recipe's own folder: compose's `.env`, what `env_file` names, what a script sources."""

from __future__ import annotations

import re
from pathlib import Path

from sparkloom.inputs.importers.containers import SECRET

MOST = 64 << 10  # characters
_LINE = re.compile(r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:'([^']*)'|"([^"]*)"|(.*?))\s*(?:\s#.*)?""")


def variables(recipe: str, named: str) -> dict[str, str]:
    """Nothing where the file is not there, or in another folder: a stranger's recipe opens no file elsewhere."""
    path = Path(recipe).parent / named
    if recipe == "-" or Path(named).parent != Path() or not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8") as file:
            lines = file.read(MOST).splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = filter(None, map(_LINE.fullmatch, lines))
    return {match[1]: match[match.lastindex or 1] for match in found}


def known(recipe: str, named: str) -> dict[str, str]:
    """Those that a command may show: no secrets."""
    return {name: value for name, value in variables(recipe, named).items() if not SECRET.search(name)}
