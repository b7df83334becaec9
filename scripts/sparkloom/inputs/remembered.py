"""Which inventory is meant where none is named: a line in the person's own folder, which `sparkloom use` writes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sparkloom.base import files
from sparkloom.base.errors import InputError


def meant(named: Path | None) -> Path | None:
    """The inventory that is named, else the remembered one: who sits at a terminal is told of that."""
    if named is None and (named := site()) and sys.stderr.isatty() and "--json" not in sys.argv:
        sys.stderr.write(f"site: {named} (sparkloom use)\n")
    return named


def site() -> Path | None:
    """The remembered inventory; refused where its folder is gone."""
    try:
        said = place().read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    if said and not Path(said).is_dir():
        message = f"{said} is no folder any more; `sparkloom use SITE` names another, `sparkloom use --none` forgets it"
        raise InputError.single(str(place()), message, rule="missing-file")
    return Path(said) if said else None


def keep(folder: Path | None) -> None:
    """Remembers it, or forgets what was remembered."""
    with files.writable(place(), "-i names the site, or XDG_CONFIG_HOME a folder of yours"):
        if folder is None:
            place().unlink(missing_ok=True)
        else:
            files.write(place(), f"{folder.resolve()}\n")


def place() -> Path:
    """The file, where XDG says that a person's settings are."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - without a home it is "~"
    return Path(home) / "sparkloom" / "site.txt"
