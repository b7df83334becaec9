"""One machine's QEMU: its command line, started, found again and stopped."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

from testbed.rack.shell import RackError, run
from testbed.vm import image, names, qmp, trees
from testbed.vm.names import Machine

BUSES = ("0x1c.0", "0x1d.0")  # of the two root ports; what sits behind them gets the buses 01 and 02


def argv(machine: Machine, folder: Path, extra: tuple[str, ...] = ()) -> list[str]:
    """Everything of the machine but its files is fixed: a kept state fits only the same hardware."""
    accelerator = names.accelerator()
    made = image.place()
    kernel = f"{names.KERNEL_ARGUMENTS} systemd.machine_id={machine.machine_id} systemd.hostname={machine.name}"
    return [
        *trees.program("qemu-system-x86_64"),
        *("-name", machine.name, "-machine", "q35", "-smp", "1", "-m", str(names.MEMORY_MIB)),
        *("-accel", "tcg,thread=multi,tb-size=256" if accelerator == "tcg" else accelerator),
        *("-cpu", "max" if accelerator == "tcg" else "host"),
        *("-display", "none", "-nodefaults", "-no-user-config", "-daemonize"),
        *("-L", str(trees.qemu_tree() / "usr/share/qemu"), "-L", str(trees.qemu_tree() / "usr/share/seabios")),
        *("-pidfile", str(folder / "pid"), "-serial", f"file:{folder / 'serial.log'}"),
        *("-qmp", f"unix:{control(folder)},server=on,wait=off"),
        *("-kernel", str(made / "vmlinuz"), "-initrd", str(made / "initrd"), "-append", kernel),
        *("-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=random"),
        *("-drive", f"if=none,id=disk,file={folder / 'disk.qcow2'},format=qcow2,cache=unsafe,discard=unmap"),
        *("-device", "virtio-blk-pci,drive=disk,num-queues=1"),
        *("-netdev", f"user,id=management,hostfwd=tcp:127.0.0.1:{machine.port}-10.0.2.15:22"),
        *("-device", f"virtio-net-pci,netdev=management,mac={machine.mac(9)},romfile="),
        *(word for rail in range(len(names.GROUPS)) for word in _rail(machine, rail)),
        *extra,
    ]


def _rail(machine: Machine, rail: int) -> list[str]:
    """One card behind a root port of its own, on its rail's multicast group; the loopback device carries it."""
    return [
        *("-device", f"pcie-root-port,id=port{rail},bus=pcie.0,chassis={rail + 1},slot={rail + 1},addr={BUSES[rail]}"),
        *("-netdev", f"socket,id=rail{rail},mcast={names.GROUPS[rail]},localaddr=127.0.0.1"),
        *("-device", f"igb,netdev=rail{rail},bus=port{rail},addr=0x0,mac={machine.mac(rail)},romfile="),
    ]


def control(folder: Path) -> Path:
    return folder / "qmp.sock"


def overlay(base: Path, form: str, target: Path) -> None:
    """A disk that holds only what differs from its base, which nobody writes to."""
    target.unlink(missing_ok=True)
    run([*trees.program("qemu-img"), "create", "-q", "-f", "qcow2", "-b", base, "-F", form, target])


def start(machine: Machine, folder: Path, extra: tuple[str, ...] = ()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if len(str(control(folder)).encode()) > 107:
        raise RackError(f"{control(folder)} is too long for a socket (107 characters): move the checkout higher up")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", machine.port)) == 0:
            raise RackError(f"port {machine.port} on 127.0.0.1 is taken, {machine.name}'s SSH needs it: free it")
    (folder / "serial.log").unlink(missing_ok=True)
    modules = trees.qemu_tree() / "usr/lib/x86_64-linux-gnu/qemu"
    run(argv(machine, folder, extra), env={"QEMU_MODULE_DIR": str(modules)}, timeout=60)


def pid(folder: Path) -> int | None:
    """Of the running machine; a number left by a killed one may be another program's now."""
    try:
        found = int((folder / "pid").read_text())
        command = Path(f"/proc/{found}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return found if str(folder / "disk.qcow2").encode() in command else None


def stop(folder: Path, seconds: float = 10) -> bool:
    """Power off, as a plug would; whether it was running."""
    found = pid(folder)
    if found is None:
        return False
    try:
        qmp.ask(control(folder), "quit", timeout=5)
    except RackError:
        os.kill(found, signal.SIGTERM)
    until = time.monotonic() + seconds
    while pid(folder) is not None:
        if time.monotonic() > until:
            os.kill(found, signal.SIGKILL)
        time.sleep(0.1)
    return True
