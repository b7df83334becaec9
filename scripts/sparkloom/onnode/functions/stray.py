"""Functions that a dead pod's network namespace still holds, brought back to the host.

A pod that is deleted by force, or a container runtime that is killed, can leave its network namespace behind with the
function in it: the host then shows "Link not found" and the next pod cannot start (facts from multus #1134, microk8s
#1468, sriov-cni #349). A namespace counts as dead when no process is in it and it is older than a pod's start takes.
Every other namespace is only looked at.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from sparkloom.onnode.functions import common
from sparkloom.onnode.functions.common import ask

PROC = Path("/proc")
# Where container runtimes and `ip netns` pin a namespace that has no process.
PINNED = ("/run/netns", "/var/run/netns", "/run/docker/netns")


def find(wanted: dict[str, str], pci: dict[str, str], young: float) -> list[tuple[str, str, str]]:
    """(namespace's path, name there, planned name) of each wanted {MAC: planned name} in a dead namespace.

    One younger than `young` seconds may be a starting pod's, which has its function before its first process.
    """
    alive = {inode(path) for path in PROC.glob("[0-9]*/ns/net")}
    lost = []
    for path in namespaces():
        if inode(path) in alive or time.time() - changed(path) < young:
            continue
        for link in ask("nsenter", f"--net={path}", "ip", "-json", "-details", "link", "show") or []:
            name = pci.get(link.get("parentdev", "")) or wanted.get(str(link.get("address", "")).lower())
            if name:
                lost.append((str(path), link["ifname"], name))
    return lost


def namespaces() -> Iterator[Path]:
    """Each namespace once: those that are pinned to a path, and those that an open file of a process keeps."""
    seen: set[int] = set()
    pinned = (entry for folder in PINNED for entry in sorted(Path(folder).glob("*")))
    opened = (entry for folder in PROC.glob("[0-9]*/fd") for entry in descriptors(folder))
    for path in (*pinned, *opened):
        number = inode(path)
        if number is not None and number not in seen:
            seen.add(number)
            yield path


def descriptors(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue
        if re.match(r"net:\[\d+\]$", target):
            yield folder / name


def inode(path: Path) -> int | None:
    """The namespace's own number, the same by whichever path it is reached."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


def changed(path: Path) -> float:
    try:
        return path.stat().st_ctime
    except OSError:
        return time.time()


def bring_home(namespace: str, there: str, name: str) -> None:
    """Down, named as planned, and into the first process' namespace: the host's."""
    inside = ("nsenter", f"--net={namespace}", "ip", "link", "set")
    renamed = [("dev", there, "name", name)] if there != name else []
    for step in (("dev", there, "down"), *renamed, ("dev", name, "netns", "1")):
        common.call(*inside, *step)
