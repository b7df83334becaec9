"""What an engine says of itself on /metrics, under names that are the same for every engine."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from sparkloom.onnode.prometheus import samples

# engine's name -> ours, and how several series (ranks, models) become one figure: sum, max, mean, counter
Names = Mapping[str, tuple[str, str]]
# The same of a node, as host_metrics writes it.
HOST: Names = {
    "sparkloom_host_memory_available_bytes": ("available_bytes", "sum"),
    "sparkloom_gpu_temperature_celsius": ("celsius", "max"),
    "sparkloom_gpu_power_watts": ("watts", "sum"),
    "sparkloom_gpu_clock_hertz": ("hertz", "max"),
    "sparkloom_host_written_timestamp_seconds": ("written", "max"),
}
FRESH = 120.0  # seconds in which a node's figures are those of now: they are written every 15


def read(page: bytes, names: Names) -> dict[str, float]:
    """Our names and their values; numbers that are none are left out."""
    found: dict[str, list[float]] = defaultdict(list)
    how = dict(names.values())
    for sample in samples(page.decode(errors="replace"), names):
        if math.isfinite(sample.value):
            found[names[sample.name][0]].append(sample.value)
    return {ours: _joined(how[ours], values) for ours, values in found.items()}


def _joined(how: str, values: list[float]) -> float:
    if how == "max":
        return max(values)
    return sum(values) / (len(values) if how == "mean" else 1)
