"""Kernels that are compiled at run time: the one long work of an engine that neither its log nor its counters show."""

from __future__ import annotations

import os
from pathlib import Path

from sparkloom.onnode.rank import procs

COMPILERS = {
    "c++", "cc1plus", "cicc", "clang", "clang++", "cudafe++", "fatbinary", "g++", "gcc", "ninja", "nvcc", "nvlink",
    "ptxas", "tileiras",
}  # fmt: skip
DEPTH = 3  # Triton and Inductor make a folder per kernel in the first levels; FlashInfer's compilers are processes


class Kernels:
    """Looked at now and then; each look tells what happened since the one before."""

    def __init__(self, cache: str, root: int | None = None) -> None:
        self.cache, self.root = cache, root or os.getpid()
        self._seen: dict[tuple[int, int], int] = {}
        self._newest = newest(cache)

    @property
    def cold(self) -> bool:
        """Nothing was ever compiled here for this profile and image."""
        try:
            return bool(self.cache) and not any(Path(self.cache).iterdir())
        except OSError:
            return False

    def look(self) -> str:
        """What was compiled since the last look; a compiler that only hangs does not count."""
        now = {(p.pid, p.born): p.ticks for p in procs.below(self.root) if p.title.split(" ")[0] in COMPILERS}
        moved = any(ticks > self._seen.get(key, -1) for key, ticks in now.items())
        self._seen = now
        before, self._newest = self._newest, newest(self.cache)
        if moved:
            return f"compiling kernels, {len(now)} compilers run"
        return "compiling kernels" if self._newest > before else ""


def newest(folder: str, depth: int = DEPTH) -> int:
    """When something was last added in these levels of a folder; 0 where there is none."""
    if not folder:
        return 0
    try:
        with os.scandir(folder) as entries:
            below = [entry.path for entry in entries if depth > 1 and entry.is_dir(follow_symlinks=False)]
        return max([Path(folder).stat().st_mtime_ns, *(newest(path, depth - 1) for path in below)])
    except OSError:  # replaced at this moment
        return 0
