"""Network ports as PCI functions: link, PCIe lanes, errors that the bus counted, and the RDMA device behind them."""

from __future__ import annotations

import re
from pathlib import Path

from sparkloom.onnode.host.read import number, text
from sparkloom.onnode.task import Data

# Of NVIDIA's driver in a Spark's kernel (NV-Kernels pull request 271), and what its two files say as read on nodes with
# a cable and without one.
HOTPLUG = "bus/platform/devices/MTKP0001:00/pcie_hotplug"


def hotplug(sysfs: Path) -> Data:
    """Whether the card is taken off the bus while no cable is in, and whether one is seen; empty without the driver."""
    folder = sysfs / HOTPLUG
    if not folder.is_dir():
        return {}
    return {"enabled": text(folder / "hotplug_enabled") == "1", "cable": text(folder / "debug_state") == "1"}


def ports(sysfs: Path) -> list[Data]:
    """Every network port that is a physical PCI function, with what its link and its RDMA device say."""
    devices = sorted(sysfs.glob("bus/pci/devices/*"))
    networks = [device for device in devices if text(device / "class").startswith("0x02")]
    return [port(sysfs, device) for device in networks if not (device / "physfn").exists()]


def port(sysfs: Path, device: Path) -> Data:
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
        "pcie": lanes(device, "current"),
        "pcie_most": lanes(device, "max"),
        "pcie_errors": {kind: errors(device, kind) for kind in ("correctable", "nonfatal", "fatal")},
        "hca": hca,
        "firmware": text(sysfs / "class/infiniband" / hca / "fw_ver") if hca else "",
        "rdma_state": text(sysfs / "class/infiniband" / hca / "ports/1/state") if hca else "",
    }


def lanes(device: Path, which: str) -> str:
    """As `32.0 GT/s PCIe x4`; nothing where the bus does not say, as in a virtual machine."""
    speed, width = (text(device / f"{which}_link_{what}") for what in ("speed", "width"))
    return f"{speed} x{width}" if speed and width else ""


def errors(device: Path, kind: str) -> dict[str, int]:
    """What Advanced Error Reporting counted since the start, by its own names; the total is what they add up to."""
    counted = dict(re.findall(r"^(\w+)\s+(\d+)$", text(device / f"aer_dev_{kind}"), re.M))
    return {name: int(times) for name, times in counted.items() if int(times) and not name.startswith("TOTAL_")}
