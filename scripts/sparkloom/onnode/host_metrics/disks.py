"""What is free on a node's disks, and of one that fills who holds most: the kubelet evicts nobody for it (role k3s)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sparkloom.onnode import prometheus
from sparkloom.onnode.host.read import completed

FREE = ("sparkloom_host_disk_free_bytes", "Free on the file system of this folder.")
HELD = ("sparkloom_host_disk_held_bytes", "What the largest folders hold of a file system with little free.")
GIB = 1 << 30
LITTLE = 20 * GIB  # as the alert SparkloomDiskFills
MOST = 5
EVERY_SECONDS = 600.0
PATIENCE = 20.0  # seconds for the folders of one pattern
_kept: dict[str, tuple[float, list[tuple[str, int]]]] = {}  # by folder: when it was measured, the largest


def samples(disks: Mapping[str, Sequence[str]], now: float) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """`disks`: a folder of each, and patterns of what may be large on it."""
    for folder in filter(lambda name: Path(name).is_dir(), disks):
        free = shutil.disk_usage(folder).free
        yield FREE[0], {"folder": folder}, free
        if free < LITTLE:
            yield from ((HELD[0], {"folder": folder, "holder": name}, size) for name, size in _held(folder, disks, now))


def fills(page: str) -> list[str]:
    """Of a page with these: each file system with little free, and what holds most of it."""
    free, held = (list(prometheus.samples(page, (name,))) for name in (FREE[0], HELD[0]))
    found = []
    for folder, left in ((one.label("folder"), one.value) for one in free if one.value < LITTLE):
        most = max(((one.value, one.label("holder")) for one in held if one.label("folder") == folder), default=None)
        holder = f"; {most[1]} holds most, {most[0] / GIB:.1f} GiB" if most else ""
        found.append(f"{left / GIB:.1f} GiB free on the file system of {folder}{holder}")
    return found


def _held(folder: str, disks: Mapping[str, Sequence[str]], now: float) -> list[tuple[str, int]]:
    if folder not in _kept or now - _kept[folder][0] > EVERY_SECONDS:
        # Each by itself: of a folder that takes too long to count the others are still told.
        told = "".join(
            completed("du", "-sxk", "--", *map(str, named), timeout=PATIENCE).stdout
            for pattern in disks[folder]
            if (named := [path for path in Path("/").glob(pattern[1:]) if _device(path) == _device(Path(folder))])
        )
        rows = (line.split("\t", 1) for line in told.splitlines() if "\t" in line)
        largest = sorted(((name, int(kib) * 1024) for kib, name in rows), key=lambda row: -row[1])
        _kept[folder] = now, largest[:MOST]
    return _kept[folder][1]


def _device(path: Path) -> int:
    """Of its file system; a home may lie on a disk of its own, or have gone meanwhile."""
    try:
        return path.lstat().st_dev
    except OSError:
        return 0
