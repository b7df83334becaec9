"""One pull in the background: it outlives the connection that began it, and a second run finds it at work."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from sparkloom.onnode.images.content import Progress, progress
from sparkloom.onnode.images.runtime import Runtime

RUN = Path("/run/sparkloom/images")
# The command's words are "$@"; its end is told by a file that is whole or not there.
YOUNG = 3.0  # seconds in which a process may not show its words yet
KEEP = 'cd "$0" && "$@" >log 2>&1 </dev/null; echo $? >code.new; mv code.new code'


class Pull:
    waiting = "asking for it"  # before the manifest is there

    def __init__(self, runtime: Runtime, reference: str, run: Path = RUN) -> None:
        self.runtime, self.reference = runtime, reference
        self.folder = run / hashlib.sha256(reference.encode()).hexdigest()[:16]

    def words(self) -> list[str]:
        return self.runtime.pulling(self.reference)

    def start(self) -> dict[str, Any]:
        if not self._alive():
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in ("code", "log", "first"):
                (self.folder / name).unlink(missing_ok=True)
            (self.folder / "begun").write_text(str(time.time()))
            words = ["sh", "-c", KEEP, str(self.folder), *self.words()]
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
            (self.folder / "pid").write_text(str(process.pid))
        return self.status()

    def status(self) -> dict[str, Any]:
        """As the transfer of weights tells it: state, bytes, layers, rate, cause."""
        alive = self._alive()  # asked first: who ends meanwhile has told its code by then
        try:
            begun = float((self.folder / "begun").read_text())
        except (OSError, ValueError):
            return self._told("none", Progress(), 0.0, "")
        seen = progress(self.runtime.content, begun - 1)
        first = self._first(seen)
        passed = time.time() - first["time"]
        rate = (seen.have - first["have"]) / passed if passed > 0 else 0.0
        code = self._code()
        if code is None and (alive or time.time() - begun < YOUNG):
            # what is asked for before the manifest is there, and what follows the last byte, has no bytes to count
            asking = self.waiting if not seen.total else f"unpacking {seen.layers} layers"
            return self._told("moving" if seen.have < seen.total else asking, seen, rate, "", first["have"])
        if code == 0:
            return self._told("done", seen, rate, "", first["have"])
        return self._told("failed", seen, rate, self._cause(), first["have"])

    def _told(self, state: str, seen: Progress, rate: float, cause: str, before: float = 0) -> dict[str, Any]:
        return {
            "state": state,
            "have": seen.have,
            "total": seen.total,
            "moved": int(seen.have - before),
            "files_done": seen.done,
            "files": seen.layers,
            "rate": rate,
            "cause": cause,
        }

    def _first(self, seen: Progress) -> dict[str, float]:
        """What was there when the manifest was first seen: layers of an older image count, but were not moved."""
        file = self.folder / "first"
        try:
            return dict(json.loads(file.read_text()))
        except (OSError, ValueError):
            first = {"time": time.time(), "have": seen.have}
            if seen.total:
                file.write_text(json.dumps(first))
            return first

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

    def _cause(self) -> str:
        try:
            lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1][-600:] if lines else "the pull ended without a word (killed?); run this again"
