"""Wait until memory is available again.

Reads /proc/meminfo until enough is available or the time is over. Judging is the controller's work.
"""

from __future__ import annotations

import time

from sparkloom.onnode.host import memory
from sparkloom.onnode.task import Task


def main(
    task: Task,
    at_least_gib: float = 0,  # what to wait for; 0 only reads
    seconds: float = 0,  # how long to wait
) -> None:
    begun = time.monotonic()
    now = memory.info()
    while now["MemAvailable"] < at_least_gib and time.monotonic() - begun < seconds:
        time.sleep(0.5)
        now = memory.info()
    users = memory.processes()
    task.exit_json(
        memory={
            "available_gib": now["MemAvailable"],
            "total_gib": now["MemTotal"],
            "resident_gib": sum(user["gib"] for user in users),
            "largest": users[:3],
            "waited": time.monotonic() - begun,
        },
    )
