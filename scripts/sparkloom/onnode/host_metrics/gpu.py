"""The GPU's figures, as nvidia-smi has them: power, temperature, clocks, what holds them back; memory where it is told.

On a GB10 memory, its clock and the power limit are [N/A] (unified memory; NVIDIA's DCGM does not support it either).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping

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
REASONS = "clocks_event_reasons.active"
OLDER = "clocks_throttle_reasons.active"  # the same, as drivers before 535 call it
HELD_FAMILY = ("sparkloom_gpu_held_back", "gauge", "1 while this holds the clock back.")
# Bits of NVML's reasons; the first one, an idle GPU, is none. (onnode/host/gpu.py has the words.)
HELD = {0x4: "power-cap", 0x8: "hardware", 0x20: "temperature", 0x40: "temperature-hardware", 0x80: "power-brake"}

_problem = ""
_reasons = REASONS


def problem() -> str:
    """Why the last question had no answer."""
    return _problem


def samples() -> Iterator[tuple[str, Mapping[str, str], float]]:
    global _reasons
    rows = _asked((*READ, _reasons))
    if rows is None and _reasons == REASONS and "not a valid field" in _problem:
        _reasons = OLDER
        rows = _asked((*READ, _reasons))
    for number, row in enumerate(rows or ()):
        gpu = {"gpu": str(number)}
        for field, (name, unit, _) in READ.items():
            if (value := _number(row.get(field, ""))) is not None:
                yield name, gpu, value * unit
        if (mask := _mask(row.get(_reasons, ""))) is not None:
            yield from ((HELD_FAMILY[0], {**gpu, "reason": why}, float(bool(mask & bit))) for bit, why in HELD.items())


def _asked(fields: tuple[str, ...]) -> list[dict[str, str]] | None:
    """A row for each GPU; None where the driver gives none."""
    global _problem
    words = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        _problem = f"nvidia-smi: {error}"
        return None
    if done.returncode:
        told = (done.stdout + done.stderr).strip().splitlines()
        _problem = f"nvidia-smi ended with {done.returncode}: {told[0] if told else 'no word'}"
        return None
    _problem = ""
    rows = [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
    return [dict(zip(fields, row, strict=False)) for row in rows if len(row) == len(fields)]


def _number(text: str) -> float | None:
    """[N/A], [Not Supported] and their like are no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def _mask(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None
