"""Kernel settings as they are in the running kernel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sparkloom.onnode.task import Task

PROC = Path("/proc/sys")
# sysctl.d(5): of files with one name the first folder's counts, and of one setting the file whose name comes last.
FOLDERS = [
    Path(folder) for folder in ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d")
]


def proc(key: str) -> Path:
    """net.ipv4.conf.eth0/1.mtu style: a slash in a key stands for a dot in a name."""
    return PROC / "/".join(part.replace("/", ".") for part in key.split("."))


def live(key: str) -> str | None:
    try:
        return " ".join(proc(key).read_text().split())
    except OSError:
        return None


def apply(key: str, value: str) -> str | None:
    """Why the kernel refused, or None."""
    try:
        proc(key).write_text(value + "\n")
    except OSError as error:
        return error.strerror or str(error)
    return None if live(key) == value else f"reads {live(key)} after writing {value}"


def differing(kept: Mapping[str, str]) -> list[str]:
    """Those that are otherwise now; a key that has gone since then is left out."""
    return sorted(key for key, value in kept.items() if live(key) not in (None, value))


def put_back(task: Task, kept: Mapping[str, str]) -> None:
    if refused := {key: why for key in differing(kept) if (why := apply(key, kept[key]))}:
        task.fail_json(msg=f"the kernel does not take back what it had: {refused}", refused=refused)


def overruled(ours: Path, wanted: dict[str, str]) -> dict[str, tuple[str, str]]:
    """{key: (file and line, value)} of what files with a later name than ours set otherwise at boot."""
    files = {file.name: file for folder in reversed(FOLDERS) for file in folder.glob("*.conf") if file.name > ours.name}
    found = {}
    keys = {proc(key): key for key in wanted}
    for name in sorted(files):
        for number, line in enumerate(_lines(files[name]), 1):
            left, equals, right = line.partition("=")
            key = keys.get(_written(left.strip().removeprefix("-").strip())) if equals else None
            if key:
                found[key] = (f"{files[name]}:{number}", " ".join(right.split()))
    return {key: told for key, told in found.items() if told[1] != wanted[key]}


def _lines(file: Path) -> list[str]:
    """Comments are empty lines; so is a file that is gone, as a link to nowhere."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return ["" if line.strip().startswith(("#", ";")) else line for line in lines]


def _written(key: str) -> Path:
    """The first separator of a key in a file says what separates: net/ipv4/x or net.ipv4.x."""
    first = next((sign for sign in key if sign in "./"), ".")
    return PROC / key if first == "/" else proc(key)
