"""One machine's QEMU: its command line, started, found again and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

from testbed.base import vm_names
from testbed.base.shell import RackError, run
from testbed.base.vm_names import Machine
from testbed.beds.vm import qmp
from testbed.make.vm import image, trees

BUSES = ("0x1c.0", "0x1d.0")  # of the two root ports; what sits behind them gets the buses 01 and 02


def argv(machine: Machine, folder: Path, extra: tuple[str, ...] = ()) -> list[str]:
    """Everything of the machine but its files is fixed: a kept state fits only the same hardware."""
    accelerator = vm_names.accelerator()
    made = image.place()
    kernel = f"{vm_names.KERNEL_ARGUMENTS} systemd.machine_id={machine.machine_id} systemd.hostname={machine.name}"
    return [
        *trees.program("qemu-system-x86_64"),
        *("-name", machine.name, "-machine", "q35", "-smp", "1", "-m", str(vm_names.MEMORY_MIB)),
        *("-accel", "tcg,thread=multi,tb-size=256" if accelerator == "tcg" else accelerator),
        *("-cpu", "max" if accelerator == "tcg" else "host"),
        *("-display", "none", "-nodefaults", "-no-user-config", "-daemonize"),
        *("-L", str(trees.qemu_tree() / "usr/share/qemu"), "-L", str(trees.qemu_tree() / "usr/share/seabios")),
        *("-serial", f"file:{folder / 'serial.log'}"),
        *("-qmp", f"unix:{control(folder)},server=on,wait=off"),
        *("-kernel", str(made / "vmlinuz"), "-initrd", str(made / "initrd"), "-append", kernel),
        *("-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=random"),
        *("-drive", f"if=none,id=disk,file={folder / 'disk.qcow2'},format=qcow2,cache=unsafe,discard=unmap"),
        *("-device", "virtio-blk-pci,drive=disk,num-queues=1"),
        *("-netdev", f"user,id=management,{_forward(machine)}"),
        *("-device", f"virtio-net-pci,netdev=management,mac={machine.mac(9)},romfile="),
        *(word for rail in range(len(vm_names.GROUPS)) for word in _rail(machine, rail)),
        *("-netdev", f"socket,id=lan,mcast={vm_names.LAN},localaddr=127.0.0.1"),
        *("-device", f"virtio-net-pci,netdev=lan,mac={machine.mac(8)},romfile="),
        *extra,
    ]


def _forward(machine: Machine) -> str:
    return f"hostfwd=tcp:127.0.0.1:{machine.port}-10.0.2.15:22"


def _rail(machine: Machine, rail: int) -> list[str]:
    """One card behind a root port of its own, on its rail's multicast group; the loopback device carries it."""
    return [
        *("-device", f"pcie-root-port,id=port{rail},bus=pcie.0,chassis={rail + 1},slot={rail + 1},addr={BUSES[rail]}"),
        *("-netdev", f"socket,id=rail{rail},mcast={vm_names.GROUPS[rail]},localaddr=127.0.0.1"),
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


def _running(words: str) -> list[int]:
    """Our QEMUs with these words on their command line: found there, so that a lost file loses no machine."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        line = _command_line(path)
        if f"{trees.QEMU}-" in line and "-name" in line and words in line:
            pids.append(int(path.parent.name))
    return pids


def _command_line(path: Path) -> str:
    """Empty for a process that has ended, even where nobody collected it yet."""
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def pid(folder: Path) -> int | None:
    return next(iter(_running(f"file={folder / 'disk.qcow2'},")), None)


def stop(folder: Path) -> bool:
    """Power off, as a plug would; whether it was running."""
    process = pid(folder)
    if process is None:
        return False
    with contextlib.suppress(RackError):
        qmp.ask(control(folder), "quit", timeout=5)
    _end([process])
    return True


def stop_leftovers(machine: Machine) -> bool:
    """What a killed command left behind, wherever its files were: it holds the machine's port."""
    pids = _running(_forward(machine))
    _end(pids)
    return bool(pids)


def _end(pids: list[int], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    for number in pids:
        sign = signal.SIGTERM
        while _command_line(Path(f"/proc/{number}/cmdline")):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, sign)
            sign = signal.SIGKILL if time.monotonic() > until else signal.SIGTERM
            time.sleep(0.1)
