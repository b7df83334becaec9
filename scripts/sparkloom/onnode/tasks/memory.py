"""Wait until memory is available again.

Reads /proc/meminfo until enough is available or the time is over. Judging is the controller's work.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from sparkloom.onnode.task import Task

PROC = Path("/proc")
GIB = 2**30


def read() -> tuple[float, float]:
    kib = dict(re.findall(r"^(\w+):\s+(\d+)", (PROC / "meminfo").read_text(), re.M))
    return int(kib["MemAvailable"]) / 2**20, int(kib["MemTotal"]) / 2**20


def resident() -> list[tuple[float, str]]:
    """GiB and name of each process, the largest first."""
    page, users = os.sysconf("SC_PAGE_SIZE"), []
    for folder in PROC.glob("[0-9]*"):
        try:
            words = (folder / "statm").read_text().split()
            users.append(((int(words[1]) - int(words[2])) * page / GIB, (folder / "comm").read_text().strip()))
        except (OSError, IndexError, ValueError):
            continue  # ended meanwhile
    return sorted(users, reverse=True)


def main(
    task: Task,
    at_least_gib: float = 0,  # what to wait for; 0 only reads
    seconds: float = 0,  # how long to wait
) -> None:
    begun = time.monotonic()
    available, total = read()
    while available < at_least_gib and time.monotonic() - begun < seconds:
        time.sleep(0.5)
        available, total = read()
    users = resident()
    task.exit_json(
        changed=False,
        memory={
            "available_gib": available,
            "total_gib": total,
            "resident_gib": sum(gib for gib, _ in users),
            "largest": [{"name": name, "gib": gib} for gib, name in users[:3]],
            "waited": time.monotonic() - begun,
        },
    )
