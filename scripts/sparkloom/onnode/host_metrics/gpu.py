"""The GPU's figures, as nvidia-smi has them: power, temperature, clocks, what holds them back; memory where it is told.

On a GB10 memory, its clock and the power limit are [N/A] (unified memory; NVIDIA's DCGM does not support it either).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkloom.onnode.host.gpu import HELD, REASONS, bits, figure, rows

SECONDS = 10.0  # for an answer that takes a tenth; a driver that hangs must not hang this
MHZ, MIB = 1e6, 1 << 20
# nvidia-smi's field -> our name, the unit, and what it is
READ: dict[str, tuple[str, float, str]] = {
    "power.draw": ("sparkloom_gpu_power_watts", 1, "What the GPU draws."),
    "temperature.gpu": ("sparkloom_gpu_temperature_celsius", 1, "Its temperature."),
    "utilization.gpu": ("sparkloom_gpu_utilization_ratio", 0.01, "Share of the time in which something ran on it."),
    "clocks.sm": ("sparkloom_gpu_clock_hertz", MHZ, "The clock of its multiprocessors."),
    "clocks.max.sm": ("sparkloom_gpu_clock_max_hertz", MHZ, "The highest that it may have."),
    "memory.used": ("sparkloom_gpu_memory_used_bytes", MIB, "Its own memory in use, where it has some."),
    "memory.total": ("sparkloom_gpu_memory_total_bytes", MIB, "Its own memory, where it has some."),
}
HELD_FAMILY = ("sparkloom_gpu_held_back", "gauge", "1 while this holds the clock back.")

problem = ""  # why the last question had no answer


def samples() -> Iterator[tuple[str, Mapping[str, str], float]]:
    global problem
    found, problem = rows((*READ, REASONS), SECONDS)
    for number, row in enumerate(found):
        gpu = {"gpu": str(number)}
        for field, (name, unit, _) in READ.items():
            if (value := figure(row[field])) is not None:
                yield name, gpu, value * unit
        if (mask := bits(row[REASONS])) is not None:
            reasons = HELD.items()
            yield from ((HELD_FAMILY[0], {**gpu, "reason": why}, float(bool(mask & bit))) for bit, (_, why) in reasons)
