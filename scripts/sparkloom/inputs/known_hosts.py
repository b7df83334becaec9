"""Which machine each name of a site means: its own known_hosts, beside hosts.yml.

ssh reads it by the name of the inventory, wherever that machine's address is. It passes over the end of a line, where
the machine's id and its board's serial number stand.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sparkloom.base import files
from sparkloom.inputs import answers

FILE = "known_hosts"


class Machine(NamedTuple):
    """Each value is empty where it is not known."""

    key: str = ""  # its SSH host key, as `ssh-ed25519 BASE64`
    machine_id: str = ""
    serial: str = ""  # of its board

    @property
    def fingerprint(self) -> str:
        """As ssh shows it."""
        digest = hashlib.sha256(base64.b64decode(self.key.partition(" ")[2])).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"

    @property
    def more(self) -> list[str]:
        """What ssh passes over."""
        known = {"machine-id": self.machine_id, "serial": self.serial}
        return [f"{what}={value}" for what, value in known.items() if value]

    def differs(self, other: Machine) -> bool:
        """Whether something that is known of both is not the same."""
        return any(mine and its and mine != its for mine, its in zip(self, other, strict=True))

    def with_more(self, other: Machine) -> Machine:
        return Machine(*(mine or its for mine, its in zip(self, other, strict=True)))


def place(folder: Path) -> Path:
    return folder / FILE


def read(folder: Path) -> dict[str, Machine]:
    """By name; a line of another form is ssh's alone."""
    file, known = place(folder), dict[str, Machine]()
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        name, kind, key, *rest = [*line.split(), "", "", ""]
        told = dict(re.findall(r"(?<!\S)(machine-id|serial)=(\S+)", " ".join(rest)))
        if not answers.fault(answers.HOST_KEY, f"{kind} {key}"):
            known.setdefault(name, Machine(f"{kind} {key}", told.get("machine-id", ""), told.get("serial", "")))
    return known


def keep(folder: Path, machines: Mapping[str, Machine]) -> None:
    """Recorded under these names; all other lines stay."""
    file = place(folder)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [line for line in lines if line.partition(" ")[0] not in machines]
    new = [" ".join([name, one.key, *one.more]) for name, one in machines.items()]
    files.write(file, "\n".join([*kept, *new]) + "\n")
