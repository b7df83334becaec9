"""Everybody who defines a port of a node, but ourselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sparkloom.site.foreign import netplan, profiles
from sparkloom.site.foreign.definition import Definition, File


@dataclass(slots=True)
class Read:
    definitions: list[Definition] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # path, why


def read(files: Iterable[File], ours: str) -> Read:
    """All definitions but our own file's, which starts with `ours`."""
    found, rows = Read(), [file for file in files if not file["text"].startswith(ours)]
    found.definitions += netplan.definitions([file for file in rows if file["kind"] == "netplan"], found.unreadable)
    for file in rows:
        if file["kind"] != "netplan":
            words = profiles.sections(file, found.unreadable)
            found.definitions += (
                profiles.of_network_manager(file, words)
                if file["kind"] == "NetworkManager"
                else profiles.of_networkd(file, words)
            )
    return found
