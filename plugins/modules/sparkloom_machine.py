#!/usr/bin/python
from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

from ansible.module_utils import sparkloom_definitions as definitions
from ansible.module_utils import sparkloom_gpu as gpu
from ansible.module_utils import sparkloom_host as host
from ansible.module_utils import sparkloom_pci as pci
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import run, text

DOCUMENTATION = r"""
module: sparkloom_machine
short_description: Read what a machine is
description:
  - System, kernel, driver, clock, memory, disks, network ports and who defines them in one run. Changes nothing.
options:
  release_file: {type: path, default: /etc/dgx-release, description: [Names the machine.]}
  paths: {type: list, elements: path, default: [], description: ["Folders, there or to be, whose free space counts."]}
  folders: {type: list, elements: path, default: [], description: [Folders whose content is measured.]}
  listens: {type: list, elements: int, default: [], description: [TCP ports of which to say who listens there.]}
  reach: {type: list, elements: dict, default: [], description: ["Machines that should answer, by C(address)."]}
  cuda:
    type: bool
    default: false
    description: ["Whether CUDA is asked what is free, which makes a context; never on a GPU that somebody uses."]
  gpu_seconds:
    type: float
    default: 0
    description: ["With C(cuda): how long an idle GPU is kept busy to see its true clock; 0 for not at all."]
  sysfs_root: {type: path, default: /sys, description: [Where sysfs is mounted.]}
"""

PROC = Path("/proc")
GIB = 2**30
MIB = 2**20
LARGE = 16 * MIB  # a block of free memory that a driver's large mappings and pinned buffers are made of


def system(release_file: str, sysfs: Path) -> dict:
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


def clock() -> dict:
    synchronised = run("timedatectl", "show", "-p", "NTPSynchronized", "--value").strip()
    return {"now": time.time(), "synchronised": {"yes": True, "no": False}.get(synchronised)}


def memory(users_of_gpu: list[int]) -> dict:
    kib = dict(re.findall(r"^(\w+):\s+(\d+)", text(PROC / "meminfo"), re.M))
    names = ("MemTotal", "MemAvailable", "MemFree", "Cached", "Shmem", "SwapTotal", "SwapFree", "CmaTotal", "CmaFree")
    users = sorted(processes(), key=lambda entry: -entry["gib"])
    return {
        "gib": {name: int(kib.get(name, 0)) / 2**20 for name in names},
        "resident_gib": sum(entry["gib"] for entry in users),
        "largest": users[:3],
        "gpu_processes": [named(pid) for pid in users_of_gpu],
        "blocks": blocks(text(PROC / "buddyinfo"), os.sysconf("SC_PAGE_SIZE")),
    }


def blocks(buddyinfo: str, page: int) -> dict:
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


def processes() -> list[dict]:
    page = os.sysconf("SC_PAGE_SIZE")
    rows = []
    for folder in PROC.glob("[0-9]*"):
        words = text(folder / "statm").split()
        if len(words) > 2:
            # resident, less what is shared with others
            rows.append({**named(int(folder.name)), "gib": (int(words[1]) - int(words[2])) * page / GIB})
    return rows


def named(pid: int) -> dict:
    folder = PROC / str(pid)
    return {"pid": pid, "name": text(folder / "comm"), "in_pod": "kubepods" in text(folder / "cgroup")}


def disk(path: str) -> dict:
    existing = next(p for p in (Path(path), *Path(path).parents) if p.exists())
    return {"path": path, "free_gib": shutil.disk_usage(existing).free / GIB, "device": existing.stat().st_dev}


def content_gib(folder: str) -> float:
    """What lies there already, partial files too; a link counts where it leads, not here."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{place}/{name}").st_blocks * 512
            except OSError:
                continue
    return total / GIB


def asked_gpu(wanted: bool, seconds: float, users: list[int] | None) -> dict:
    """What only a context can tell. A GPU that somebody uses, or may use, is left alone: its memory is theirs."""
    if not wanted or users is None or users:
        return {"free_gib": None, "load": {}}
    return gpu.ask_cuda(seconds)


def read(args: dict) -> dict:
    sysfs = Path(args["sysfs_root"])
    devices, users = gpu.devices(sysfs), gpu.processes()
    driver, state = gpu.read()
    cuda = asked_gpu(args["cuda"], args["gpu_seconds"], users)
    return {
        "clock": clock(),
        "system": {**system(args["release_file"], sysfs), **host.system()},
        "cgroups": host.cgroups(),
        "gpus": devices,
        "driver": driver,
        "gpu": {**state, "load": cuda["load"]},
        "memory": {**memory(users or []), "cuda_free_gib": cuda["free_gib"]},
        "disks": [disk(path) for path in args["paths"]],
        "content_gib": {folder: content_gib(folder) for folder in args["folders"]},
        "ports": pci.ports(sysfs),
        "network": {"files": definitions.definitions(), "links": definitions.links(sysfs)},
        "firewall": host.firewall(),
        "listening": host.listening(args["listens"]),
        "reached": host.reached(args["reach"]),
    }


def main() -> None:
    paths = {"type": "list", "elements": "path", "default": []}
    module = AnsibleModule(
        argument_spec={
            "release_file": {"type": "path", "default": "/etc/dgx-release"},
            "paths": paths,
            "folders": paths,
            "listens": {"type": "list", "elements": "int", "default": []},
            "reach": {"type": "list", "elements": "dict", "default": []},
            "cuda": {"type": "bool", "default": False},
            "gpu_seconds": {"type": "float", "default": 0},
            "sysfs_root": {"type": "path", "default": "/sys"},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, **read(module.params))


if __name__ == "__main__":
    main()
