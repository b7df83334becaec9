"""NVIDIA's hot-plug of the ConnectX-7, kept off where the plan says so.

Its handler (package dgx-spark-mlnx-hotplug) takes the card off the bus only while ARMED is there; at a boot without it,
it switches the driver's part off and leaves the card. NVIDIA's guide to its sensor bridge moves it likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sparkloom.onnode.functions import common
from sparkloom.onnode.functions.common import Steps
from sparkloom.onnode.host.pci import HOTPLUG

ARMED, ASIDE = Path("/etc/nvidia/cx7-hotplug-enabled"), Path("/etc/nvidia/cx7-hotplug-disabled")
NAME = "hot-plug of the ConnectX-7"


def as_planned(plan: Mapping[str, Any], sysfs: Path) -> Steps:
    if plan.get("hotplug", True):
        yield from as_before(sysfs)
    elif ARMED.exists():
        act = partial(_switch, sysfs, ARMED, ASIDE, "0")
        off = partial(common.remember_first, NAME, {"armed": True}, act)
        yield f"{NAME}: off, so the card stays on the bus without a cable", off


def as_before(sysfs: Path) -> Steps:
    """Only where it was this program that put it aside."""
    if NAME in common.remembered() and ASIDE.exists():
        yield f"{NAME}: on, as before", partial(_switch, sysfs, ASIDE, ARMED, "1")


def _switch(sysfs: Path, source: Path, target: Path, value: str) -> None:
    source.rename(target)
    if (file := sysfs / HOTPLUG / "hotplug_enabled").exists():
        file.write_text(f"{value}\n")
