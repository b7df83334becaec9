"""Profiles of NetworkManager and networkd's own files: sections with keys and values."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.site.foreign.netplan import MADE_BY_ITSELF, TRUE, Definition, File, interface
from sparkloom.site.foreign.netplan import words as spelled


def sections(file: File, unreadable: list[tuple[str, str]]) -> dict[str, dict[str, list[str]]]:
    """Section -> key -> values: a key may stand several times in one of networkd's."""
    found: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in file["text"].splitlines():
        word = line.strip()
        if word.startswith("[") and word.endswith("]"):
            section = word[1:-1]
        elif "=" in word and not word.startswith(("#", ";")):
            key, _, value = word.partition("=")
            found.setdefault(section, {}).setdefault(key.strip(), []).append(value.strip())
        elif word and not word.startswith(("#", ";")):
            unreadable.append((file["path"], f"'{word[:40]}' is no line of a section"))
    return found


def of_network_manager(file: File, words: dict[str, dict[str, list[str]]]) -> Iterator[Definition]:
    """A profile that names no port is for any that asks for it: none of ours does, its addresses count all the same."""
    head, ipv4 = words.get("connection", {}), words.get("ipv4", {})
    wired = head.get("type", [""])[-1] in ("ethernet", "802-3-ethernet")
    if not wired or MADE_BY_ITSELF in head.get("autoconnect-priority", []):
        return
    given = [value.split(",")[0] for key, values in ipv4.items() if key.startswith("address") for value in values]
    given = [word.strip() for entry in given for word in entry.split(";") if interface(word.strip())]
    method = ipv4.get("method", ["auto"])[-1]
    member = head.get("master", []) + head.get("controller", [])
    gives = {"auto": ["DHCP"], "link-local": ["link-local addresses"], "shared": ["a shared network"]}.get(method, [])
    names = [*head.get("interface-name", []), *words.get("match", {}).get("interface-name", [])]
    path = file["path"]
    yield Definition(
        "NetworkManager",
        "ethernets",
        head.get("id", [path])[-1],
        (path,),
        addresses=tuple((address, path) for address in given),
        gives=(*gives, *(f"a part in {name}" for name in member)),
        names=tuple(word for name in names for word in spelled(name)),
        macs=tuple(mac.lower() for mac in words.get("ethernet", {}).get("mac-address", [])),
    )


def of_networkd(file: File, words: dict[str, dict[str, list[str]]]) -> Iterator[Definition]:
    match, net = words.get("Match", {}), words.get("Network", {})
    given = [*net.get("Address", []), *words.get("Address", {}).get("Address", [])]
    gives = ["DHCP"] if net.get("DHCP", ["no"])[-1].lower() in (*TRUE, "ipv4", "ipv6") else []
    gives += ["link-local addresses"] if net.get("LinkLocalAddressing", [""])[-1] in ("ipv4", "yes") else []
    gives += [f"a part in {name}" for key in ("Bridge", "Bond", "VLAN", "VRF") for name in net.get(key, [])]
    path = file["path"]
    yield Definition(
        "networkd",
        "ethernets",
        path.rpartition("/")[2],
        (path,),
        addresses=tuple((word, path) for word in given if interface(word)),
        gives=tuple(gives),
        names=tuple(word for value in match.get("Name", []) for word in value.split()),
        macs=tuple(word.lower() for value in match.get("MACAddress", []) for word in value.split()),
        drivers=tuple(word for value in match.get("Driver", []) for word in value.split()),
    )
