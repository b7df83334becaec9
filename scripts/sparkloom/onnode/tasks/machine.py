"""Read what a machine is.

System, kernel, driver, clock, memory, disks, network ports and who defines them in one run. Changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sparkloom.onnode.host import definitions, gpu, ground, pci
from sparkloom.onnode.host import memory as host_memory
from sparkloom.onnode.host import system as host
from sparkloom.onnode.host.memory import GIB
from sparkloom.onnode.host.read import run, text
from sparkloom.onnode.task import Data, Task

PROC = Path("/proc")
LARGE = 16 << 20  # a block of free memory that a driver's large mappings and pinned buffers are made of


def system(release_file: str, sysfs: Path) -> Data:
    dmi = sysfs / "class/dmi/id"
    return {
        "python": list(sys.version_info[:3]),
        "euid": os.geteuid(),
        "kernel": os.uname().release,
        "cmdline": text(PROC / "cmdline"),
        "release_file": release_file,
        "release": text(Path(release_file)),
        "product": f"{text(dmi / 'sys_vendor')} {text(dmi / 'product_name')}".strip(),
    }


def clock() -> Data:
    synchronised = run("timedatectl", "show", "-p", "NTPSynchronized", "--value").strip()
    return {"now": time.time(), "synchronised": {"yes": True, "no": False}.get(synchronised)}


def memory(users_of_gpu: list[int]) -> Data:
    info, users = host_memory.info(), host_memory.processes()
    names = ("MemTotal", "MemAvailable", "MemFree", "Cached", "Shmem", "SwapTotal", "SwapFree", "CmaTotal", "CmaFree")
    return {
        "gib": {name: info.get(name, 0.0) for name in names},
        "resident_gib": sum(entry["gib"] for entry in users),
        "largest": users[:3],
        "gpu_processes": [host_memory.named(pid) for pid in users_of_gpu],
        "blocks": blocks(text(PROC / "buddyinfo"), os.sysconf("SC_PAGE_SIZE")),
    }


def blocks(buddyinfo: str, page: int) -> Data:
    """Free memory of the zones that drivers take large blocks from, and how much of it lies in large ones.

    A kernel whose largest block is smaller than LARGE is judged by its largest.
    """
    free = large = 0
    for counts in re.findall(r"zone +(?:Normal|Movable) +([\d ]+)", buddyinfo):
        sizes = [page << order for order in range(len(counts.split()))]
        rows = [(size, int(count)) for size, count in zip(sizes, counts.split(), strict=True)]
        free += sum(size * count for size, count in rows)
        large += sum(size * count for size, count in rows if size >= min(LARGE, sizes[-1]))
    return {"free_gib": free / GIB, "large_gib": large / GIB}


def disk(path: str) -> Data:
    existing = next(p for p in (Path(path), *Path(path).parents) if p.exists())
    return {"path": path, "free_gib": shutil.disk_usage(existing).free / GIB, "device": existing.stat().st_dev}


def content_gib(folder: str) -> float:
    """What lies there already, partial files too; a link counts where it leads, not here."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_blocks * 512
    return total / GIB


def main(
    task: Task,
    release_file: Path = Path("/etc/dgx-release"),  # names the machine
    paths: Sequence[str] = (),  # folders, there or to be, whose free space counts
    folders: Sequence[str] = (),  # folders whose content is measured
    listens: Sequence[int] = (),  # TCP ports of which to say who listens there
    reach: Sequence[Data] = (),  # machines that should answer, by `address`
    cuda: bool = False,  # whether CUDA is asked what is free, which makes a context; never on a GPU that somebody uses
    gpu_seconds: float = 0,  # with `cuda`: how long an idle GPU is kept busy to see its true clock; 0 for not at all
    sysfs_root: Path = Path("/sys"),  # where sysfs is mounted
) -> None:
    users = gpu.processes()
    driver, state = gpu.read()
    # What only a context can tell.
    # A GPU that somebody uses, or may use, is left alone: its memory is theirs.
    asked = gpu.ask_cuda(gpu_seconds) if cuda and users == [] else {"free_gib": None, "load": {}}
    task.exit_json(
        clock=clock(),
        system={**system(str(release_file), sysfs_root), **host.system()},
        cgroups=host.cgroups(),
        gpus=gpu.devices(sysfs_root),
        driver=driver,
        gpu={**state, "load": asked["load"]},
        memory={**memory(users or []), "cuda_free_gib": asked["free_gib"]},
        disks=[disk(path) for path in paths],
        content_gib={folder: content_gib(folder) for folder in folders},
        ports=pci.ports(sysfs_root),
        hotplug=pci.hotplug(sysfs_root),
        network={"files": definitions.definitions(), "links": definitions.links(sysfs_root)},
        ground=ground.read(sysfs_root, users or []),
        firewall=host.firewall(),
        listening=host.listening(listens),
        reached=host.reached(list(reach)),
    )
