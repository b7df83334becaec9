"""Machines made, kept and brought back: booted once, and from then on every start takes seconds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.base import store, vm_names
from testbed.base.shell import RackError
from testbed.base.steps import Say, Step, artefact
from testbed.base.vm_names import Machine
from testbed.beds.vm import login, qemu, qmp
from testbed.make.vm import image, trees

BOOT_SECONDS = 600.0  # four at once under software emulation took 250 on two busy cores
RECIPE = "1"  # raise to boot anew
BOOTED = "vm-booted"


# --- booted once --------------------------------------------------------------------------------------------


def _inputs(count: int) -> list[store.Part]:
    """A kept state fits one disk, one QEMU and one set of hardware."""
    nothing = Path("/")
    hardware = [" ".join(qemu.argv(machine, nothing)) for machine in vm_names.machines(count)]
    return [RECIPE, *hardware, *image.inputs(), vm_names.accelerator()]


def _boot(count: int, work: Path, say: Say) -> None:
    machines = vm_names.machines(count)
    # The folder gets its final name when all is done, and nothing in a kept state names a file.
    folders = [work / machine.name for machine in machines]
    login.provide()
    try:
        for machine, folder in zip(machines, folders, strict=True):
            qemu.stop_leftovers(machine)
            folder.mkdir()
            qemu.overlay(image.place() / "disk.raw", "raw", folder / "disk.qcow2")
            qemu.start(machine, folder)
        say(f"{count} machines boot ({vm_names.accelerator()})")
        login.wait_all(machines, folders, BOOT_SECONDS, say)
        for machine, folder in zip(machines, folders, strict=True):
            login.sh(machine, "systemctl is-system-running --wait >/dev/null || true; sync")
            qmp.write_state(qemu.control(folder), folder / "state")
            say(f"{machine.name} is kept ({(folder / 'state').stat().st_size >> 20} MiB)")
    finally:
        for folder in folders:
            qemu.stop(folder)


def booted(count: int) -> Path:
    return store.place(BOOTED, store.key_of(_inputs(count)))


# --- running ------------------------------------------------------------------------------------------------


def running(count: int = vm_names.MOST) -> list[Machine]:
    return [machine for machine in vm_names.machines(count) if qemu.pid(machine.state) is not None]


def _resume(count: int, say: Say) -> None:
    machines = [machine for machine in vm_names.machines(count) if qemu.pid(machine.state) is None]
    login.provide()

    def resume(machine: Machine) -> None:
        kept = booted(count) / machine.name
        machine.state.mkdir(parents=True, exist_ok=True)
        qemu.overlay(kept / "disk.qcow2", "qcow2", machine.state / "disk.qcow2")
        qemu.start(machine, machine.state, ("-incoming", f"file:{kept / 'state'}"))
        qmp.wait_running(qemu.control(machine.state))
        login.wait(machine, machine.state, 60)
        login.set_clock(machine)
        say(f"{machine.name} answers on 127.0.0.1:{machine.port}")

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(resume, machines))


def build_steps(count: int) -> list[Step]:
    title = f"{count} machines booted once and kept"
    boot = artefact(BOOTED, title, lambda: _inputs(count), lambda work, say: _boot(count, work, say))
    return [*trees.steps(), *image.steps(), boot]


def up_steps(count: int) -> list[Step]:
    start = Step("vm-up", "starting them where they were kept", lambda: len(running(count)) == count,
                 lambda say: _resume(count, say))  # fmt: skip
    return [*build_steps(count), start]


def down() -> list[str]:
    """Stop all and forget their disks; says which ran."""
    every = vm_names.machines(vm_names.MOST)
    stopped = [machine.name for machine in every if qemu.stop(machine.state) or qemu.stop_leftovers(machine)]
    store.remove_tree(vm_names.STATE)
    return stopped


def of(name: str) -> Machine:
    """A running machine by its inventory name."""
    machine = next((m for m in vm_names.machines(vm_names.MOST) if m.name == name), None)
    if machine is None:
        known = ", ".join(m.name for m in vm_names.machines(vm_names.MOST))
        raise RackError(f"found no machine '{name}', expected one of: {known}")
    if qemu.pid(machine.state) is None:
        raise RackError(f"{name} is not running: python -m testbed vm up")
    return machine


def reboot(machine: Machine) -> str:
    """As a person would; waits until the machine answers again."""
    before = login.boot_id(machine)
    if not before:
        raise RackError(f"{machine.name} does not answer; its console: {machine.state / 'serial.log'}")
    login.sh(machine, "systemctl reboot", check=False)
    return login.wait(machine, machine.state, BOOT_SECONDS, other_than=before)


def power_on(machine: Machine) -> None:
    """With its disk as it was left, by its own end or by a cut."""
    qemu.start(machine, machine.state)
    login.wait(machine, machine.state, BOOT_SECONDS)


def snapshot(machine: Machine, action: str, name: str) -> None:
    """Keep the machine as it is under a name, or bring that back; lost with the machine."""
    refusal = qmp.typed(qemu.control(machine.state), f"{'savevm' if action == 'save' else 'loadvm'} {name}")
    if refusal:
        raise RackError(f"{machine.name}: QEMU says: {refusal}")
    if action == "load":
        login.wait(machine, machine.state, 60)
        login.set_clock(machine)
