"""Logging in to a machine: SSH with the throw-away key, over a port of 127.0.0.1."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.base import names, vm_names
from testbed.base.shell import RackError, run
from testbed.base.steps import Say
from testbed.base.vm_names import Machine
from testbed.beds.vm import qemu
from testbed.make.vm import image

FOLDER = vm_names.STATE / "ssh"


def provide() -> None:
    """The key and what the machines answer with, where the inventory looks for them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copy2(image.place() / "id", FOLDER / "id")
    (FOLDER / "id").chmod(0o600)
    kind, key = (image.place() / "host.pub").read_text().split()[:2]
    lines = (f"[127.0.0.1]:{machine.port} {kind} {key}\n" for machine in vm_names.machines(vm_names.MOST))
    (FOLDER / "known_hosts").write_text("".join(lines))
    names.forget_machines(names.REPO / "inventories/vm")


def argv(machine: Machine, *options: str) -> list[str]:
    files = ("-i", str(FOLDER / "id"), "-o", f"UserKnownHostsFile={FOLDER / 'known_hosts'}", "-o", "IdentitiesOnly=yes")
    quiet = ("-o", "LogLevel=ERROR", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=15")
    return ["ssh", "-F", "none", *files, *quiet, *options, "-p", str(machine.port), "root@127.0.0.1"]


def sh(machine: Machine, script: str, *, check: bool = True, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a shell script on the machine as root."""
    return run([*argv(machine, "-o", "BatchMode=yes"), "sh -eu"], stdin=script, check=check, timeout=timeout)


def out(machine: Machine, script: str, timeout: float = 300) -> str:
    return sh(machine, script, timeout=timeout).stdout.strip()


def boot_id(machine: Machine) -> str:
    """Empty while the machine does not answer."""
    try:
        return sh(machine, "cat /proc/sys/kernel/random/boot_id", check=False, timeout=30).stdout.strip()
    except RackError:
        return ""


def wait(machine: Machine, folder: Path, seconds: float, *, other_than: str = "") -> str:
    """Until the machine answers, after a reboot with another boot's number than before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if qemu.pid(folder) is None:
            raise RackError(f"{machine.name} ended while it booted; its console: {folder / 'serial.log'}")
        answer = boot_id(machine)
        if answer and answer != other_than:
            return answer
        time.sleep(1)
    raise RackError(f"{machine.name} did not answer in {seconds:.0f} s; its console: {folder / 'serial.log'}")


def wait_all(machines: Sequence[Machine], folders: Sequence[Path], seconds: float, say: Say) -> None:
    def answered(pair: tuple[Machine, Path]) -> None:
        wait(*pair, seconds)
        say(f"{pair[0].name} answers")

    with ThreadPoolExecutor(len(machines)) as pool:
        list(pool.map(answered, zip(machines, folders, strict=True)))


def set_clock(machine: Machine) -> None:
    """A kept machine goes on with the time at which it was kept."""
    sh(machine, f"date --set @{time.time():.0f} >/dev/null")
