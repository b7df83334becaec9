"""What networkd has read, kept while systemd reads its units again.

Every `systemctl daemon-reload` runs netplan's generator, which writes all of /run/systemd/network anew with the same
words. networkd tells a file by its inode and time: at its next reload it would set up the way to the node once more.
So the files that it has read are kept as second names before a unit is written, and get their places back before the
reload. (Seen with systemd 257 and netplan 1.1: one address event of the management port without this, none with it.)
"""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

from sparkloom.onnode.task import Task

LIVE = Path("/run/systemd/network")
HELD = Path("/run/sparkloom/networkd")
ASKED = ("systemctl", "show", "systemd-networkd.service", "--property=StateChangeTimestamp", "--timestamp=us+utc")


def last_read(task: Task) -> float:
    """When networkd last read its files: its start, or a reload where systemd counts it (since 253). 0: unknown."""
    code, out, _ = task.run_command(list(ASKED))
    words = out.strip().partition("=")[2].split()
    with contextlib.suppress(ValueError, IndexError):
        return datetime.fromisoformat(f"{words[1]} {words[2]}").replace(tzinfo=UTC).timestamp() if code == 0 else 0.0
    return 0.0


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.is_file() and not path.is_symlink())


def _has_read(path: Path, read: float) -> bool:
    return path.is_file() and path.stat().st_mtime <= read


def hold(task: Task) -> None:
    """Before a unit is written: those of the live files that networkd has read."""
    files = _files(LIVE)
    read = last_read(task) if files else 0.0
    if not read:
        return
    HELD.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in files:
        if _has_read(path, read):
            with contextlib.suppress(OSError):
                (HELD / path.name).unlink(missing_ok=True)
                os.link(path, HELD / path.name)


def put_back(task: Task) -> None:
    """Before networkd reads again: what says the same as the file that it knows is that file."""
    kept = _files(HELD)
    read = last_read(task) if kept else 0.0
    for held in kept:
        live = LIVE / held.name
        anew = live.is_file() and not _has_read(live, read)
        if anew and _has_read(held, read) and held.read_bytes() == live.read_bytes():
            with contextlib.suppress(OSError):
                held.replace(live)
