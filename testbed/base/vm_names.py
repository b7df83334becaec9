"""Names, versions and places of the virtual machines: the one copy of each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from testbed.base import names as rack

REPO = rack.REPO
CACHE = rack.CACHE
STATE = REPO / ".build" / "vm"
VM_DIR = REPO / "testbed" / "make" / "vm"
GUEST_FILES = VM_DIR / "guest"
PACKAGES = VM_DIR / "packages.txt"
MODULES = VM_DIR / "modules.txt"

SUITE = "trixie"  # its QEMU has the igb card (since 8.0), its systemd names functions as the nodes' does
QEMU_PACKAGES = ("qemu-system-x86", "qemu-utils", "seabios")
MEMORY_MIB = 2048
MOST = 4

# Data networks: one multicast group per rail, on the loopback device only; nothing leaves this machine.
GROUPS = ("239.77.0.1:47010", "239.77.0.2:47011")
LAN = "239.77.0.3:47012"  # likewise: between the machines, where the management port leads to this computer only
# The boot disk of a machine whose kernel knows nothing of hardware beyond what QEMU gives it.
KERNEL_ARGUMENTS = (
    "root=/dev/vda rw console=ttyS0 quiet loglevel=4 mitigations=off nokaslr tsc=reliable audit=0 systemd.show_status=0"
)


@dataclass(frozen=True)
class Machine:
    """One virtual Spark; numbers count from 1 and are the inventory's fabric_index."""

    number: int

    @property
    def name(self) -> str:
        return f"spark{self.number}"

    @property
    def port(self) -> int:
        return 2200 + self.number

    @property
    def state(self) -> Path:
        return STATE / self.name

    @property
    def machine_id(self) -> str:
        """Given on the kernel's command line: the same one twice would make systemd give two machines the same MACs."""
        return f"5ba4c0000000400080000000000000{self.number:02x}"

    def mac(self, card: int) -> str:
        """Of a rail's card (0, 1), of the LAN's (8), of the management port's (9)."""
        return f"52:54:00:5b:{card:02x}:{self.number:02x}"


def machines(count: int) -> list[Machine]:
    return [Machine(number) for number in range(1, count + 1)]


def accelerator() -> str:
    """KVM where the processor's own virtualisation reaches us, else software: KVM without it boots no stock kernel."""
    chosen = os.environ.get("SPARKLOOM_VM_ACCEL")
    if chosen:
        return chosen
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return "kvm" if flags & {"vmx", "svm"} and os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg"
