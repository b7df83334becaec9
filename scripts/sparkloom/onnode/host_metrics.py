"""What a node knows and no exporter tells, as a file for one: its GPU, the memory guard, when certificates end.

For the node-exporter's textfile collector, every 15 seconds, whole or not at all. What cannot be read is left out,
never 0: a GB10 tells nothing of its memory, and a driver that hangs tells nothing.
"""

from __future__ import annotations

import base64
import binascii
import glob
import json
import re
import ssl
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sparkloom.onnode import memory_guard
from sparkloom.onnode.host import backup, memory
from sparkloom.onnode.host.gpu import HELD, REASONS, UNKNOWN, bits, figure, rows
from sparkloom.onnode.prometheus import Family

EVERY_SECONDS = 15.0
FILE = "sparkloom.prom"
GIB = 1 << 30

Sample = tuple[str, Mapping[str, str], float]

# --- the GPU, as nvidia-smi has it ----------------------------------------------------------------------------------
# On a GB10 memory, its clock and the power limit are [N/A] (unified memory; NVIDIA's DCGM does not support it either).

GPU_SECONDS = 10.0  # for an answer that takes a tenth; a driver that hangs must not hang this
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
OLDER = "clocks_throttle_reasons.active"  # REASONS, as drivers before 535 call it
HELD_FAMILY = ("sparkloom_gpu_held_back", "gauge", "1 while this holds the clock back.")

_problem = ""
_reasons = REASONS


def gpu_problem() -> str:
    """Why the last question had no answer."""
    return _problem


def gpu_samples() -> Iterator[Sample]:
    global _reasons, _problem
    found, _problem = rows((*READ, _reasons), GPU_SECONDS)
    if _reasons == REASONS and UNKNOWN in _problem:
        _reasons = OLDER
        found, _problem = rows((*READ, _reasons), GPU_SECONDS)
    for number, row in enumerate(found):
        gpu = {"gpu": str(number)}
        for field, (name, unit, _) in READ.items():
            if (value := figure(row[field])) is not None:
                yield name, gpu, value * unit
        if (mask := bits(row[_reasons])) is not None:
            reasons = HELD.items()
            yield from ((HELD_FAMILY[0], {**gpu, "reason": why}, float(bool(mask & bit))) for bit, (_, why) in reasons)


# --- when certificates end: of files that lie on this node, and of the one that the endpoint shows ------------------
# The standard library reads no certificate, so the one field that is asked for is found by its form: two times that
# follow each other, Validity { notBefore, notAfter }, each a UTCTime or a GeneralizedTime.

CERTIFICATE_SECONDS = 600.0
ENDPOINT_SECONDS = 5.0  # for the endpoint
PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s*(.+?)-----END CERTIFICATE-----", re.S)
TIME = rb"(?:\x17\x0d\d{12}|\x18\x0f\d{14})Z"
VALIDITY = re.compile(rb"\x30[\x1e\x20\x22]" + TIME + rb"(?:\x17\x0d(?=\d{12}Z)|\x18\x0f(?=\d{14}Z))(\d+)Z")
LONGEST = 1 << 20  # bytes of a file


class Ends:
    """`named`: a word for each kind, and the patterns of its files. What ends first counts."""

    def __init__(self, named: dict[str, list[str]], endpoint: str) -> None:
        self.named, self.endpoint = named, endpoint
        self._known: dict[str, float] = {}
        self._next = 0.0

    def read(self, now: float) -> dict[str, float]:
        """Certificates live for months: read every ten minutes. One that cannot be read is not there."""
        if now >= self._next:
            self._next = now + CERTIFICATE_SECONDS
            found = {name: list(_of_files(patterns)) for name, patterns in self.named.items()}
            if self.endpoint:
                found["endpoint"] = list(_of_endpoint(self.endpoint))
            self._known = {name: min(ends) for name, ends in found.items() if ends}
        return self._known


def _of_files(patterns: Iterable[str]) -> Iterator[float]:
    for pattern in patterns:
        for name in sorted(glob.glob(pattern)):  # noqa: PTH207 - a whole pattern, from the root
            try:
                yield from ends(Path(name).read_text(errors="replace")[:LONGEST])
            except OSError:
                continue


def _of_endpoint(where: str) -> Iterator[float]:
    """Whatever it shows, trusted or not: only its end is asked."""
    host, _, port = where.rpartition(":")
    try:
        yield from ends(ssl.get_server_certificate((host, int(port)), timeout=ENDPOINT_SECONDS))
    except (OSError, ValueError):
        return


def ends(text: str) -> Iterator[float]:
    """Of every certificate in a PEM text."""
    for body in PEM.findall(text):
        try:
            yield not_after(base64.b64decode("".join(body.split()), validate=True))
        except (ValueError, binascii.Error):
            continue


def not_after(der: bytes) -> float:
    if found := VALIDITY.search(der):
        return _time(found[1].decode())
    raise ValueError("no certificate")


def _time(text: str) -> float:
    """Two digits of a year mean 1950 to 2049."""
    if len(text) == len("YYMMDDHHMMSS"):
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc).timestamp()  # noqa: UP017 - 3.10


# --- the file -------------------------------------------------------------------------------------------------------

AVAILABLE = Family("sparkloom_host_memory_available_bytes", "gauge", "MemAvailable, as the memory guard reads it.")
FLOOR = Family("sparkloom_host_memory_floor_bytes", "gauge", "Below it the memory guard stops an engine.")
STOPS = Family("sparkloom_host_memory_guard_stops_total", "counter", "Engines that it stopped since the boot.")
CERTIFICATE = Family(
    "sparkloom_host_certificate_ends_timestamp_seconds", "gauge", "When the first of these certificates ends."
)
WRITTEN = Family("sparkloom_host_written_timestamp_seconds", "gauge", "When this file was written.")
FAMILIES = (*(Family(name, "gauge", told) for name, _, told in READ.values()), Family(*HELD_FAMILY),
            AVAILABLE, FLOOR, STOPS, CERTIFICATE, WRITTEN)  # fmt: skip
NAMES = tuple(family.name for family in FAMILIES)


def samples(settings: Mapping[str, Any], ends: Mapping[str, float], now: float) -> Iterator[Sample]:
    yield from gpu_samples()
    yield from _memory(Path(str(settings["guard"])))
    yield from ((CERTIFICATE.name, {"certificate": name}, at) for name, at in sorted(ends.items()))
    yield WRITTEN.name, {}, now


def _memory(guard: Path) -> Iterator[Sample]:
    """Floor and available memory from one hand: who compares them needs no second exporter."""
    now = memory.info(memory_guard.PROC)
    if "MemAvailable" in now:
        yield AVAILABLE.name, {}, round(now["MemAvailable"] * GIB)
    try:
        floor = float(json.loads(guard.read_text())["floor_gib"])
    except (OSError, ValueError, KeyError, TypeError):  # no guard here
        return
    if floor > 0:
        yield FLOOR.name, {}, floor * GIB
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
    kept = Ends(settings["certificates"], settings.get("endpoint") or "")
    said = ""
    while True:
        now = time.time()
        try:
            # its scratch name is none that a collector reads, and the exporter, who is nobody, may read the file
            backup.write(Path(settings["folder"], FILE), page(samples(settings, kept.read(now), now)), 0o644)
            trouble = gpu_problem()
        except OSError as error:
            trouble = f"{error.filename or settings['folder']}: {error.strerror}"
        if trouble != said:
            print(trouble or "all is read again", flush=True)
            said = trouble
        time.sleep(EVERY_SECONDS)
