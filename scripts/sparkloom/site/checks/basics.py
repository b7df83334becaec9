"""What is asked of any machine before more can be: a login, root, Python, room on its disks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkloom.base.finding import Finding

Probe = Mapping[str, Any]
OLDEST_PYTHON = (3, 9)
LONGEST_WORDS = 240
SUDO = "run with -K, or let ansible_user use sudo without a password"


def unusable(node: str, probe: Probe) -> Finding:
    """The node could not be read at all: why, in the words a person can act on."""
    why = " ".join(str(probe.get("msg") or "no answer").split()).removeprefix("Task failed: ")
    why = why if len(why) <= LONGEST_WORDS else f"{why[:LONGEST_WORDS]} ..."
    if probe.get("unreachable") or re.search(r"no such container|connection (refused|timed out)", why, re.I):
        fix = "ansible_host and ansible_user in hosts.yml; ssh-copy-id"
        return Finding(node, "connection", why, "a login over ssh", fix)
    if re.search(r"sudo|become", why, re.I):
        return Finding(node, "sudo", why, "root through sudo", SUDO)
    if re.search(r"python|interpreter", why, re.I):
        fix = "apt-get install python3 there, or set ansible_python_interpreter"
        return Finding(node, "python", why, "python3 on the node", fix)
    return Finding(node, "connection", why, "an answer", "run again with -vvv")


def system(node: str, probe: Probe) -> Iterator[Finding]:
    told = probe["system"]
    if tuple(told["python"][:2]) < OLDEST_PYTHON:
        python = ".".join(map(str, told["python"]))
        yield Finding(node, "python", python, "3.9 or newer", "ansible_python_interpreter in hosts.yml")
    if told["euid"] != 0:
        yield Finding(node, "sudo", f"uid {told['euid']}", "root", SUDO)


def disks(node: str, probe: Probe, need: Mapping[str, tuple[float, str]], change: str) -> Iterator[Finding]:
    """What is needed under each path, and for what, added up per file system."""
    for device in dict.fromkeys(disk["device"] for disk in probe["disks"]):
        here = [disk for disk in probe["disks"] if disk["device"] == device]
        paths = list(dict.fromkeys(disk["path"] for disk in here))
        parts = [need[path] for path in paths if path in need]
        free, wanted = min(disk["free_gib"] for disk in here), sum(gib for gib, _ in parts)
        if free >= wanted:
            continue
        uses = " and ".join(use for gib, use in parts if gib)
        found = f"{free:.1f} GiB free under {' and '.join(paths)}"
        yield Finding(node, "disk", found, f"{wanted:.0f} GiB: {uses}", f"make room, or {change}")
