"""One pull in the background, and how far it is by containerd's own store."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparkloom.onnode.images.content import Progress, progress
from sparkloom.onnode.images.kept import RUN, Kept
from sparkloom.onnode.images.runtime import Runtime


class Pull(Kept):
    what = "the pull"
    waiting = "asking for it"  # before the manifest is there

    def __init__(self, runtime: Runtime, reference: str, run: Path = RUN) -> None:
        super().__init__(reference, run)
        self.runtime, self.reference = runtime, reference

    def words(self) -> list[str]:
        return self.runtime.pulling(self.reference)

    def start(self) -> dict[str, Any]:
        if not self._alive():
            self.begin(self.words(), "first")
        return self.status()

    def status(self) -> dict[str, Any]:
        """As the transfer of weights tells it: state, bytes, layers, rate, cause."""
        begun = self.begun()
        if begun is None:
            return self._told("none", Progress(), 0.0, "")
        working = self.working(begun)
        seen = progress(self.runtime.content, begun - 1)
        first = self._first(seen)
        passed = time.time() - first["time"]
        rate = (seen.have - first["have"]) / passed if passed > 0 else 0.0
        if working:
            # what is asked for before the manifest is there, and what follows the last byte, has no bytes to count
            asking = self.waiting if not seen.total else f"unpacking {seen.files} layers"
            return self._told("moving" if seen.have < seen.total else asking, seen, rate, "", first["have"])
        if self._code() == 0:
            return self._told("done", seen, rate, "", first["have"])
        return self._told("failed", seen, rate, self._cause(), first["have"])

    def _told(self, state: str, seen: Progress, rate: float, cause: str, before: float = 0) -> dict[str, Any]:
        return {**asdict(seen), "state": state, "moved": int(seen.have - before), "rate": rate, "cause": cause}

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
