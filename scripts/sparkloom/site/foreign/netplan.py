"""Netplan's files, merged as netplan merges them.

It reads every file in the order of its name, wherever it lies; of one name the file in /run counts before the one in
/etc, and that before the one in /lib. Of one id, mappings join, lists are concatenated, anything else is replaced. The
merged result decides what a port has; the file of each address is kept.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface
from typing import Any

import yaml

SECTIONS = ("ethernets", "bonds", "bridges", "vlans", "vrfs", "dummy-devices", "virtual-ethernets")
TRUE = ("true", "yes", "on", "y", "1")
MADE_BY_ITSELF = "-999"  # the priority of a profile that NetworkManager makes for a port that has none
File = Mapping[str, Any]  # kind, path, text, and whether the text is whole


def ordered(files: Iterable[File]) -> list[File]:
    """As netplan reads them; a file that another one of its name replaces is not read."""
    order = ("/lib/", "/etc/", "/run/")
    by_name: dict[str, File] = {}
    for file in sorted(
        files, key=lambda file: next((n for n, top in enumerate(order) if file["path"].startswith(top)), 0)
    ):
        by_name[file["path"].rpartition("/")[2]] = file
    return [by_name[name] for name in sorted(by_name)]


def network(text: str) -> dict[str, Any]:
    """What a file says below `network:`, every scalar as it is written: a MAC of digits is no number here."""
    data = yaml.load(text, Loader=yaml.BaseLoader)
    if data in (None, ""):
        return {}
    if not isinstance(data, dict):
        raise yaml.YAMLError("no mapping")
    return data.get("network") or {} if isinstance(data.get("network") or {}, dict) else {}


def definitions(files: list[File], unreadable: list[tuple[str, str]]) -> Iterator[Definition]:
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    said: dict[tuple[str, str], list[str]] = {}
    sources: dict[tuple[str, str], dict[str, str]] = {}
    for file in ordered(files):
        try:
            data = network(file["text"])
        except yaml.YAMLError as error:
            unreadable.append((file["path"], " ".join(str(error).split())))
            continue
        for section in SECTIONS:
            for name, body in _mapping(data.get(section)).items():
                key, body = (section, name), _mapping(body)
                said.setdefault(key, []).append(file["path"])
                for address in _addresses(body):
                    sources.setdefault(key, {}).setdefault(address, file["path"])
                _merge(merged.setdefault(key, {}), body)
    for (section, name), body in merged.items():
        if not _by_itself(body):
            yield _definition(section, name, body, tuple(said[section, name]), sources.get((section, name), {}))


def _definition(
    section: str, name: str, body: dict[str, Any], files: tuple[str, ...], sources: Mapping[str, str]
) -> Definition:
    match = _mapping(body.get("match"))
    return Definition(
        "netplan",
        section,
        name,
        files,
        addresses=tuple(sources.items()),
        gives=tuple(_gives(section, body)),
        names=tuple(words(match.get("name"))) if match else (name,),
        macs=tuple(mac.lower() for mac in words(match.get("macaddress"))),
        drivers=tuple(words(match.get("driver"))),
        set_name=str(body.get("set-name") or ""),
        members=(*words(body.get("interfaces")), *words(body.get("link"))),
    )


def _gives(section: str, body: dict[str, Any]) -> Iterator[str]:
    if section != "ethernets":
        yield f"a part in one of its {section}"
    if str(body.get("dhcp4", "")).lower() in TRUE or str(body.get("dhcp6", "")).lower() in TRUE:
        yield "DHCP"
    if "ipv4" in words(body.get("link-local")):
        yield "link-local addresses"
    if body.get("virtual-function-count") or body.get("link"):
        yield "virtual functions"
    if body.get("routes") or body.get("gateway4"):
        yield "routes"


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        held = into.get(key)
        if isinstance(held, dict) and isinstance(value, dict):
            _merge(held, value)
        elif isinstance(held, list) and isinstance(value, list) and key != "link-local":
            into[key] = held + [entry for entry in value if entry not in held]
        else:
            into[key] = dict(value) if isinstance(value, dict) else value


def _addresses(body: Mapping[str, Any]) -> list[str]:
    """IPv4 with their prefix; one may be the key of its own options."""
    words = (next(iter(entry), "") if isinstance(entry, dict) else entry for entry in body.get("addresses") or [])
    return [word for word in words if interface(word)]


def _by_itself(body: Mapping[str, Any]) -> bool:
    options = _mapping(_mapping(body.get("networkmanager")).get("passthrough"))
    return options.get("connection.autoconnect-priority") == MADE_BY_ITSELF


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
