"""One node as the site plans it and as it was read: who defines its ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from sparkloom.inputs.cluster import Cluster, Rail
from sparkloom.launch.fabric import HEADER, Plan
from sparkloom.site.foreign import netplan, profiles
from sparkloom.site.foreign.netplan import Definition

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
        rows = [file for file in self.network["files"] if not file["text"].startswith(HEADER)]
        found = Read([], [])
        plans = [row for row in rows if row["kind"] == "netplan"]
        found.definitions.extend(netplan.definitions(plans, found.unreadable))
        for row in (row for row in rows if row["kind"] != "netplan"):
            words = profiles.sections(row, found.unreadable)
            of = profiles.of_network_manager if row["kind"] == "NetworkManager" else profiles.of_networkd
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
        files = [file for file in self.network["files"] if file["text"].startswith(HEADER)]
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
