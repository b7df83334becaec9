"""Kernels that are compiled at run time: watched, as no log shows them, and laid out as they were sealed.

Engines execute what lies in their cache, and whoever took one over through a request can write there. The node sealed
what the first token's engine had compiled (`onnode/tasks/seal.py`) where this pod can only read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from sparkloom.onnode.rank import procs
from sparkloom.onnode.rank.plan import GroupPlan

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


CURRENT = "current"  # a link to the folder that counts, beside it


def lay_out(plan: GroupPlan) -> str:
    """What there is to tell; empty where nothing was sealed yet."""
    kept = Path(plan.sealed, CURRENT)
    if not plan.sealed or not kept.is_dir():
        return ""
    begun, cache = time.monotonic(), Path(plan.cache)
    _empty(cache)
    try:
        shutil.copytree(kept.resolve(), cache, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        _empty(cache)  # half a library is worse than none
        first = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        return f"the sealed kernels could not be laid out in {cache}, so they are compiled anew: {first}"
    size = sum(path.lstat().st_size for path in cache.rglob("*") if path.is_file() and not path.is_symlink())
    return f"as sealed: {size / 2**20:,.0f} MiB laid out in {time.monotonic() - begun:.1f} s"


def _empty(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
