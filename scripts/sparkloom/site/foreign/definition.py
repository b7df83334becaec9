"""One id of netplan, one profile of NetworkManager or one file of networkd: which ports it means, and what it gives."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface
from typing import Any

TRUE = ("true", "yes", "on", "y", "1")
MADE_BY_ITSELF = "-999"  # the priority of a profile that NetworkManager makes for a port that has none
File = Mapping[str, Any]  # kind, path, text, and whether the text is whole


@dataclass(frozen=True, slots=True)
class Definition:
    """One id of netplan, one profile, or one file of networkd."""

    kind: str
    section: str
    name: str
    files: tuple[str, ...]
    addresses: tuple[tuple[str, str], ...] = ()  # each with the file that says it
    gives: tuple[str, ...] = ()  # what else it brings to its port
    names: tuple[str, ...] = ()  # globs of interfaces
    macs: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    set_name: str = ""
    members: tuple[str, ...] = ()  # ids or interfaces that it makes part of something larger

    def covers(self, interface: str, macs: Iterable[str], driver: str) -> bool:
        """Whether a port is meant; one that is told by several things has to have all of them."""
        if self.section != "ethernets":
            return interface in self.members
        asked = [
            (self.names, any(fnmatch.fnmatchcase(interface, glob) for glob in self.names)),
            (self.macs, bool({mac.lower() for mac in macs} & set(self.macs))),
            (self.drivers, any(fnmatch.fnmatchcase(driver, glob) for glob in self.drivers)),
        ]
        given = [holds for wanted, holds in asked if wanted]
        return interface == self.set_name or (bool(given) and all(given))


def interface(word: str) -> IPv4Interface | None:
    try:
        return IPv4Interface(word)
    except ValueError:
        return None


def words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(entry) for entry in value]
    return str(value).replace(";", " ").split() if value else []
