"""Can this kernel register memory for RDMA? From a list of known ones, and from the sign of the known fault."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.finding import Finding

DATA = Path(__file__).with_name("kernels.yml")
CURE = "boot a 6.17 kernel (6.17.0-1031-nvidia), or add kho=off to GRUB_CMDLINE_LINUX, update-grub, reboot"
ALLOW = "preflight_kernels_allowed names releases that your site knows to work"
# What the reserve amounts to in reports is 9 GiB; a registered CMA area never has more free than in all.
STRAY_GIB = 0.5


@cache
def known() -> tuple[Mapping[str, Any], ...]:
    return tuple(document.own(DATA.read_text()))


def find(release: str) -> Mapping[str, Any] | None:
    return next((entry for entry in known() if re.search(entry["match"], release)), None)


def judge(node: str, probe: Mapping[str, Any], allowed: Collection[str]) -> Iterator[Finding]:
    release, words = probe["system"]["kernel"], probe["system"]["cmdline"].split()
    if release in allowed:
        return
    entry = find(release)
    cured = entry is not None and entry.get("unless") in words
    if entry is not None and not entry["works"] and not cured:
        message = f"{release}: {entry['why']}"
        yield Finding(node, "kernel", message, "one that registers RDMA memory", f"{CURE}; {ALLOW}")
        return
    memory = probe["memory"]["gib"]
    stray = memory["CmaFree"] - memory["CmaTotal"]
    if stray > STRAY_GIB and not cured:
        yield Finding(
            node,
            "kernel",
            f"{release} with {stray:.1f} GiB free of memory that belongs to no CMA area (kexec handover's reserve)",
            "CmaFree no larger than CmaTotal in /proc/meminfo; with it ibv_reg_mr fails with ENOMEM",
            f"{CURE}; {ALLOW}",
        )
    elif entry is None:
        yield Finding(
            node,
            "kernel",
            f"{release}, of which nothing is known",
            "one of scripts/sparkloom/site/checks/kernels.yml",
            f"watch the first start; {ALLOW}",
            "warning",
        )
