#!/usr/bin/python
from __future__ import annotations

import os
import re
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_memory
short_description: Wait until memory is available again
description:
  - Reads /proc/meminfo until enough is available or the time is over. Judging is the controller's work.
options:
  at_least_gib: {type: float, default: 0, description: [What to wait for; 0 only reads.]}
  seconds: {type: float, default: 0, description: [How long to wait.]}
"""

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


def main() -> None:
    options = {"at_least_gib": {"type": "float", "default": 0}, "seconds": {"type": "float", "default": 0}}
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    begun = time.monotonic()
    available, total = read()
    while available < module.params["at_least_gib"] and time.monotonic() - begun < module.params["seconds"]:
        time.sleep(0.5)
        available, total = read()
    users = resident()
    module.exit_json(
        changed=False,
        memory={
            "available_gib": available,
            "total_gib": total,
            "resident_gib": sum(gib for gib, _ in users),
            "largest": [{"name": name, "gib": gib} for gib, name in users[:3]],
            "waited": time.monotonic() - begun,
        },
    )


if __name__ == "__main__":
    main()
