"""Is the GPU in its hidden slow state? It then answers and computes, at a quarter of its clock, until power is cut.

Seen while idle it looks as always: only a clock under load tells. Preflight puts load on an idle GPU for a moment and
counts cycles; of a GPU that somebody uses, what the driver reports of it then is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding

CHECK = "gpu"
BUSY = 80  # percent of utilisation from which a clock says something
LEAST_LIMIT_WATT = 60  # a GB10 that is well takes more than that under full load
# Some units never get more from their power supply than 30 or 100 W (ai-muninn.com, 30 W safety mode; owners of GX10s).
STUCK_WATT = 110
POWER = {"power cap", "power brake"}
CURE = (
    "switch the node off, take its power cable out of wall and node for five minutes, start it with the power supply "
    "that came with it; a reboot is not enough"
)


def judge(node: str, probe: Mapping[str, Any], least_mhz: float) -> Iterator[Finding]:
    told = probe["gpu"]
    load = told.get("load") or {}
    state = load.get("state") or {} if load else told
    mhz = load.get("mhz") if load else told.get("mhz")
    busy = bool(load) or (told.get("percent") or 0) >= BUSY
    if busy and mhz is not None and mhz < least_mhz:
        how = "under a load of our own" if load else f"at {told['percent']:.0f} % utilisation"
        parts = [f"{mhz:.0f} MHz {how}"]
        parts += [f"{state['watt']:.0f} W"] if state.get("watt") is not None else []
        parts += [f"held back by {' and '.join(state['held_by'])}"] if state.get("held_by") else []
        expected = f"{least_mhz:g} MHz or more: 2400 are usual, 500 to 850 are the slow state (preflight_gpu_mhz)"
        fix = "let it cool down, and give it air" if _hot(state) else CURE
        yield Finding(node, CHECK, ", ".join(parts), expected, fix)
    elif busy and (why := POWER & set(state.get("held_by") or ())) and (watt := state.get("watt") or 0) < STUCK_WATT:
        found = f"{watt:.0f} W and {mhz or 0:.0f} MHz, held back by {' and '.join(sorted(why))}"
        expected = "no power cap below that; units stuck at 30 or 100 W have a power supply that they do not trust"
        yield Finding(node, CHECK, found, expected, CURE, "warning")
    limit = told.get("watt_limit")
    if limit is not None and limit < LEAST_LIMIT_WATT:
        fix = "nvidia-smi -q -d POWER shows who set it; sudo nvidia-smi -pl with its default takes it back"
        yield Finding(node, CHECK, f"a power limit of {limit:.0f} W", "none, as a GB10 has it", fix, "warning")


def _hot(state: Mapping[str, Any]) -> bool:
    return any(why.startswith("temperature") for why in state.get("held_by") or ())
