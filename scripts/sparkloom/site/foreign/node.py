"""One node as the site plans it and as it was read: who defines its ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from sparkloom.inputs.cluster import Cluster, Rail
from sparkloom.launch.fabric import NETPLAN_HEADER, Plan
from sparkloom.site.foreign import netplan
from sparkloom.site.foreign.netplan import MADE_BY_ITSELF, TRUE, Definition, File, interface
from sparkloom.site.foreign.netplan import words as spelled

Network = Mapping[str, Any]  # what `definitions` read of a node: files and links
NONE: Network = {"files": [], "links": {}}


class Read(NamedTuple):
    definitions: list[Definition]
    unreadable: list[tuple[str, str]]  # path, why


@dataclass(frozen=True)
class Node:
    """One node as the site plans it and as it was read."""

    name: str
    cluster: Cluster
    plan: Plan
    network: Network

    @cached_property
    def read(self) -> Read:
        """All definitions but our own file's."""
        rows = [file for file in self.network["files"] if not file["text"].startswith(NETPLAN_HEADER)]
        found = Read([], [])
        found.definitions.extend(
            netplan.definitions([row for row in rows if row["kind"] == "netplan"], found.unreadable)
        )
        for row in (row for row in rows if row["kind"] != "netplan"):
            words = sections(row, found.unreadable)
            of = of_network_manager if row["kind"] == "NetworkManager" else of_networkd
            found.definitions.extend(of(row, words))
        return found

    @property
    def links(self) -> Mapping[str, Any]:
        return dict(self.network["links"])

    @property
    def ours(self) -> set[tuple[str, str]]:
        """Interface and address of all that our own file gives, by a plan that may have been another one.

        Where it is there, what is live on our functions beside it is drift, and the role mends it.
        """
        files = [file for file in self.network["files"] if file["text"].startswith(NETPLAN_HEADER)]
        given = netplan.definitions(files, unreadable=[])
        return {(definition.name, cidr) for definition in given for cidr, _ in definition.addresses}

    @property
    def management(self) -> set[str]:
        """Interfaces that are the way to the node."""
        address = next(node.management_address for node in self.cluster.nodes if node.name == self.name)
        held = {name for name, link in self.links.items() if any(a.split("/")[0] == address for a in link["addresses"])}
        return {self.cluster.management_interface} | held

    @property
    def planned(self) -> set[tuple[str, str]]:
        return {(e.interface, e.cidr) for e in self.plan.endpoints if e.node == self.name}

    def ports(self) -> dict[str, tuple[Rail, bool]]:
        """Interface -> its rail, and whether it is one of the functions that the plan gives an address."""
        rails = {rail.name: rail for rail in self.cluster.fabric.rails_of(self.name)}
        found = {rail.at(self.name).pf: (rail, False) for rail in rails.values()}
        return found | {e.interface: (rails[e.rail], True) for e in self.plan.endpoints if e.node == self.name}

    def covered(self, definition: Definition, names: Mapping[str, Any]) -> list[str]:
        """Those of these interfaces that a definition means."""
        planned = {e.interface: e.mac for e in self.plan.endpoints if e.node == self.name}
        return [
            name
            for name in names
            if definition.covers(
                name,
                {*self.links.get(name, {}).get("macs", ()), planned.get(name, "")} - {""},
                self.links.get(name, {}).get("driver", ""),
            )
        ]


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
