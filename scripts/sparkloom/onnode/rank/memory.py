"""The node's memory between two loads: GPU and CPU share it, and a crashed engine may leave tens of GiB behind.

33 GB per crash were reported, and the next load then fails late or takes the node along. Only MemAvailable tells: what
the driver keeps is charged to no process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

from sparkloom.onnode.host.memory import info
from sparkloom.onnode.rank.plan import GUARD_FILE, GroupPlan

SLACK_GIB = 8.0  # may be gone for other reasons
CHARGED = ("AnonPages", "Shmem", "Slab", "PageTables", "KernelStack", "Mlocked")


class Memory:
    def __init__(self, plan: GroupPlan) -> None:
        self.plan = plan
        self.before = 0.0  # GiB available ahead of the first load
        self._short_since: float | None = None

    def faults(self) -> list[str]:
        """Why the next load must still wait; nothing once the memory is back, or has been waited for."""
        now = info(Path(self.plan.proc))
        available = now.get("MemAvailable", 0.0)
        if not available:
            return []
        if not self.before:
            self.before = available
        missing = self.before - SLACK_GIB - available
        if missing <= 0:
            self._short_since = None
            return []
        self._short_since = self._short_since or time.monotonic()
        waited = time.monotonic() - self._short_since
        needs = self.plan.memory_gib
        if waited > self.plan.limits.memory and not available < needs <= now.get("MemTotal", 0.0):
            return []
        wanted = f"{self.before:.0f} GiB were before the last load"
        return [f"memory: {available:.1f} GiB available, {wanted}; {holder(now)}"]

    @property
    def short(self) -> bool:
        """It did not all come back, and the load is tried all the same."""
        return self._short_since is not None


def guarded(plan: GroupPlan, since: float) -> str:
    """How the node's memory guard ended an engine that was started then, with its figures; empty where it did not."""
    try:
        told = json.loads((Path(plan.run) / GUARD_FILE).read_text())
        return f"was ended by the node's memory guard: {told['found']}" if told["when"] >= since else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def holder(now: Mapping[str, float]) -> str:
    """Who has what is not available: as far as the kernel knows it, and the rest."""
    used = now.get("MemTotal", 0.0) - now["MemAvailable"]
    charged = sum(now.get(name, 0.0) for name in CHARGED)
    kept = max(0.0, used - charged)
    if kept > charged:
        return f"{kept:.0f} GiB are charged to no process, as after an engine that crashed: reboot the node if it stays"
    return (
        f"processes hold {now.get('AnonPages', 0.0):.0f} GiB, shared memory {now.get('Shmem', 0.0):.0f}: "
        "`ps aux --sort=-rss | head` on the node names them"
    )
