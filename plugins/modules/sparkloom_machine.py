#!/usr/bin/python
from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

from ansible.module_utils import sparkloom_definitions as definitions
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import number, outcome, run, text

DOCUMENTATION = r"""
module: sparkloom_machine
short_description: Read what a machine is
description:
  - System, kernel, driver, clock, memory, disks, network ports and who defines them in one run. Changes nothing.
options:
  release_file: {type: path, default: /etc/dgx-release, description: [Names the machine.]}
  paths: {type: list, elements: path, default: [], description: ["Folders, there or to be, whose free space counts."]}
  folders: {type: list, elements: path, default: [], description: [Folders whose content is measured.]}
  sysfs_root: {type: path, default: /sys, description: [Where sysfs is mounted.]}
"""

PROC = Path("/proc")
NVIDIA = "0x10de"
GIB = 2**30
# A program of its own: a driver that hangs or ends its caller must not take this module with it.
ASK_CUDA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
for call in (
    lambda: cuda.cuInit(0),
    lambda: cuda.cuDeviceGet(ctypes.byref(device), 0),
    lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
    lambda: cuda.cuCtxSetCurrent(context),
    lambda: cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)),
):
    if call():
        raise SystemExit(1)
print(free.value)
"""


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


def driver() -> dict:
    """What nvidia-smi says, why it says nothing, and what the kernel has loaded."""
    answer, why = outcome("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    loaded = re.search(r"(?:Kernel Module|Module for \S+)\s+([\d.]+)", text(PROC / "driver/nvidia/version"))
    return {"version": next(iter(answer.split()), ""), "why": why, "loaded": loaded[1] if loaded else ""}


def clock() -> dict:
    synchronised = run("timedatectl", "show", "-p", "NTPSynchronized", "--value").strip()
    return {"now": time.time(), "synchronised": {"yes": True, "no": False}.get(synchronised)}


def memory() -> dict:
    kib = dict(re.findall(r"^(\w+):\s+(\d+)", text(PROC / "meminfo"), re.M))
    names = ("MemTotal", "MemAvailable", "MemFree", "Cached", "Shmem", "SwapTotal", "SwapFree", "CmaTotal", "CmaFree")
    users = sorted(processes(), key=lambda entry: -entry["gib"])
    apps = run("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader")
    return {
        "gib": {name: int(kib.get(name, 0)) / 2**20 for name in names},
        "resident_gib": sum(entry["gib"] for entry in users),
        "largest": users[:3],
        "gpu_processes": [named(int(pid)) for pid in apps.split() if pid.isdigit()],
        "cuda_free_gib": cuda_free_gib(),
    }


def cuda_free_gib() -> float | None:
    """What CUDA would give an engine now; None where it cannot be asked."""
    answer = run(sys.executable, "-c", ASK_CUDA).strip()
    return int(answer) / GIB if answer.isdigit() else None


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


def ports(sysfs: Path) -> list[dict]:
    """Every network port that is a physical PCI function, with what its link and its RDMA device say."""
    rows = []
    for device in sorted(sysfs.glob("bus/pci/devices/*")):
        if text(device / "class").startswith("0x02") and not (device / "physfn").exists():
            rows.append(port(sysfs, device))
    return rows


def port(sysfs: Path, device: Path) -> dict:
    name = next(iter(sorted(p.name for p in device.glob("net/*"))), "")
    hca = next(iter(sorted(p.name for p in device.glob("infiniband/*") if p.exists())), "")
    link = sysfs / "class/net" / name if name else Path("/nonexistent")
    flags = text(link / "flags", "0x0")
    return {
        "pci": device.name,
        "vendor": text(device / "vendor"),
        "device": text(device / "device"),
        "interface": name,
        "up": bool(int(flags, 16) & 1),
        "carrier": text(link / "carrier") == "1",
        "speed": number(link / "speed"),
        "mtu": number(link / "mtu"),
        "mac": text(link / "address"),
        "master": (link / "master").resolve().name if (link / "master").exists() else "",
        "total_vfs": number(device / "sriov_totalvfs"),
        "vfs": number(device / "sriov_numvfs"),
        "pcie": f"{text(device / 'current_link_speed')} x{text(device / 'current_link_width')}".removesuffix(" x"),
        "hca": hca,
        "firmware": text(sysfs / "class/infiniband" / hca / "fw_ver") if hca else "",
        "rdma_state": text(sysfs / "class/infiniband" / hca / "ports/1/state") if hca else "",
    }


def gpus(sysfs: Path) -> list[str]:
    devices = [device for device in sorted(sysfs.glob("bus/pci/devices/*")) if text(device / "vendor") == NVIDIA]
    return [text(device / "device") for device in devices if text(device / "class").startswith("0x03")]


def main() -> None:
    paths = {"type": "list", "elements": "path", "default": []}
    module = AnsibleModule(
        argument_spec={
            "release_file": {"type": "path", "default": "/etc/dgx-release"},
            "paths": paths,
            "folders": paths,
            "sysfs_root": {"type": "path", "default": "/sys"},
        },
        supports_check_mode=True,
    )
    args = module.params
    sysfs = Path(args["sysfs_root"])
    module.exit_json(
        changed=False,
        clock=clock(),
        system=system(args["release_file"], sysfs),
        gpus=gpus(sysfs),
        driver=driver(),
        memory=memory(),
        disks=[disk(path) for path in args["paths"]],
        content_gib={folder: content_gib(folder) for folder in args["folders"]},
        ports=ports(sysfs),
        network={"files": definitions.definitions(), "links": definitions.links(sysfs)},
    )


if __name__ == "__main__":
    main()
