"""What memory a machine has, and which processes hold it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparkloom.onnode.host.read import text
from sparkloom.onnode.task import Data

PROC = Path("/proc")
GIB = 2**30


def info(proc: Path = PROC) -> dict[str, float]:
    """GiB by the kernel's names; empty where it cannot be read."""
    rows = re.findall(r"^(\w+):\s+(\d+)", text(proc / "meminfo"), re.M)
    return {name: int(kib) / 2**20 for name, kib in rows}


def processes() -> list[Data]:
    """The largest first: resident, less what is shared with others."""
    page = os.sysconf("SC_PAGE_SIZE")
    rows = []
    for folder in PROC.glob("[0-9]*"):
        words = text(folder / "statm").split()
        if len(words) > 2:
            rows.append({**named(int(folder.name)), "gib": (int(words[1]) - int(words[2])) * page / GIB})
    return sorted(rows, key=lambda row: -row["gib"])


def named(pid: int) -> Data:
    folder = PROC / str(pid)
    return {"pid": pid, "name": text(folder / "comm"), "in_pod": "kubepods" in text(folder / "cgroup")}
