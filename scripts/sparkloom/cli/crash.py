"""A crash of ours leaves one small file to be sent with a report: the command, versions, where it was."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
import traceback
from pathlib import Path

from sparkloom.base import files
from sparkloom.cli.commands import PROGRAM


def report(error: Exception, version: str) -> str:
    """One line for the person; it names the file, or how to see as much where none can be written."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    try:
        how = f"report it with {_written(error, version)}"
    except (OSError, RuntimeError):  # no home, a read-only one, a full disk
        how = "SPARKLOOM_DEBUG=1 shows where; please report it"
    return f"{PROGRAM}: unexpected {what}; this is a bug of ours: {how}\n"


def _written(error: Exception, version: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / PROGRAM / "crashes"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = (
        f"$ {shlex.join([PROGRAM, *sys.argv[1:]])}\n"
        f"{PROGRAM} {version}, Python {platform.python_version()}, {platform.platform()}\n\n"
        f"{''.join(traceback.format_exception(error))}"
    )
    return files.write(folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt", text, 0o600)
