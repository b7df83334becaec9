"""A command in the background: it outlives the connection that began it, and a second run finds it at work."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

RUN = Path("/run/sparkloom/images")
# The command's words are "$@"; its end is told by a file that is whole or not there.
YOUNG = 3.0  # seconds in which a process may not show its words yet
KEEP = 'cd "$0" && "$@" >log 2>&1 </dev/null; echo $? >code.new; mv code.new code'


class Kept:
    """Known by a key: whoever asks for the same is told of the one that is at work."""

    what = "the command"

    def __init__(self, key: str, run: Path = RUN) -> None:
        self.folder = run / hashlib.sha256(key.encode()).hexdigest()[:16]

    def begin(self, words: Sequence[str], *stale: str) -> None:
        """`stale`: what else an earlier one left that this one must not be told by."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("code", "log", *stale):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "begun").write_text(str(time.time()))
        quiet = subprocess.DEVNULL
        whole = ["sh", "-c", KEEP, str(self.folder), *words]
        process = subprocess.Popen(whole, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        (self.folder / "pid").write_text(str(process.pid))

    def begun(self) -> float | None:
        try:
            return float((self.folder / "begun").read_text())
        except (OSError, ValueError):
            return None

    def working(self, begun: float) -> bool:
        """Asked before its code: who ends meanwhile has told it by then."""
        alive = self._alive()
        return self._code() is None and (alive or time.time() - begun < YOUNG)

    def _code(self) -> int | None:
        try:
            return int((self.folder / "code").read_text())
        except (OSError, ValueError):
            return None

    def _alive(self) -> bool:
        """Whether that process is ours, not a later one with the same number."""
        try:
            pid = int((self.folder / "pid").read_text())
            with_it = os.fsencode(self.folder) in Path(f"/proc/{pid}/cmdline").read_bytes()
            return with_it and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (OSError, ValueError):
            return False

    def said(self) -> list[str]:
        """The lines that it wrote."""
        try:
            return (self.folder / "log").read_text(errors="replace").strip().splitlines()
        except OSError:
            return []

    def _cause(self) -> str:
        lines = self.said()
        return lines[-1][-600:] if lines else f"{self.what} ended without a word (killed?); run this again"
