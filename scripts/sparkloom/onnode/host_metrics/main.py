"""Writes a file for the node-exporter's textfile collector, every 15 seconds, whole or not at all.

What cannot be read is left out, never 0: a GB10 tells nothing of its memory, and a driver that hangs tells nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode import memory_guard
from sparkloom.onnode.host import backup, memory
from sparkloom.onnode.host_metrics import FILE, certificates, disks, gpu
from sparkloom.onnode.prometheus import Family

EVERY_SECONDS = 15.0

AVAILABLE = Family("sparkloom_host_memory_available_bytes", "gauge", "MemAvailable, as the memory guard reads it.")
FLOOR = Family("sparkloom_host_memory_floor_bytes", "gauge", "Below it the memory guard stops an engine.")
STOPS = Family("sparkloom_host_memory_guard_stops_total", "counter", "Engines that it stopped since the boot.")
CERTIFICATE = Family(
    "sparkloom_host_certificate_ends_timestamp_seconds", "gauge", "When the first of these certificates ends."
)
WRITTEN = Family("sparkloom_host_written_timestamp_seconds", "gauge", "When this file was written.")
FAMILIES = (
    *(Family(name, "gauge", told) for name, _, told in gpu.READ.values()),
    Family(*gpu.HELD_FAMILY),
    *(Family(name, "gauge", told) for name, told in (disks.FREE, disks.HELD)),
    AVAILABLE,
    FLOOR,
    STOPS,
    CERTIFICATE,
    WRITTEN,
)
NAMES = tuple(family.name for family in FAMILIES)

Sample = tuple[str, Mapping[str, str], float]


def samples(settings: Mapping[str, Any], ends: Mapping[str, float], now: float) -> Iterator[Sample]:
    yield from gpu.samples()
    yield from _memory(Path(str(settings["guard"])))
    yield from disks.samples(settings["disks"], now)
    yield from ((CERTIFICATE.name, {"certificate": name}, at) for name, at in sorted(ends.items()))
    yield WRITTEN.name, {}, now


def _memory(guard: Path) -> Iterator[Sample]:
    """Floor and available memory from one hand: who compares them needs no second exporter."""
    now = memory.info(memory_guard.PROC)
    if "MemAvailable" in now:
        yield AVAILABLE.name, {}, round(now["MemAvailable"] * disks.GIB)
    floor = float(json_text.kept(guard).get("floor_gib", 0))  # 0 where no guard is
    if floor > 0:
        yield FLOOR.name, {}, floor * disks.GIB
        yield STOPS.name, {}, memory_guard.stops()


def page(given: Iterable[Sample]) -> str:
    """By family, as a collector reads it."""
    told = list(given)
    return "".join(one.text((labels, value) for name, labels, value in told if name == one.name) for one in FAMILIES)


def main(words: list[str]) -> int:
    if len(words) != 1 or words[0].startswith("-"):
        print("usage: host-metrics.pyz SETTINGS.JSON", file=sys.stderr)
        return 2
    settings = json.loads(Path(words[0]).read_text())
    kept = certificates.Ends(settings["certificates"], settings.get("endpoint") or "")
    said = ""
    while True:
        now = time.time()
        try:
            # its scratch name is none that a collector reads, and the exporter, who is nobody, may read the file
            backup.write(Path(settings["folder"], FILE), page(samples(settings, kept.read(now), now)), 0o644)
            trouble = gpu.problem
        except OSError as error:
            trouble = f"{error.filename or settings['folder']}: {error.strerror}"
        if trouble != said:
            print(trouble or "all is read again", flush=True)
            said = trouble
        time.sleep(EVERY_SECONDS)
