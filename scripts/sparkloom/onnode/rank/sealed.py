"""The kernel cache at a pod's start: as it was sealed, whatever was written there since.

Engines execute what lies in their cache, and whoever took one over through a request can write there. The node sealed
what the first token's engine had compiled (`onnode/tasks/seal.py`) where this pod can only read.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from sparkloom.onnode.rank.order import Order

CURRENT = "current"  # a link to the folder that counts, beside it


def lay_out(order: Order) -> str:
    """What there is to tell; empty where nothing was sealed yet."""
    kept = Path(order.sealed, CURRENT)
    if not order.sealed or not kept.is_dir():
        return ""
    begun, cache = time.monotonic(), Path(order.cache)
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
