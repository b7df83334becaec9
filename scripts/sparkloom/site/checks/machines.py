"""Every machine of a site, as preflight looks at it: the Sparks, and servers of K3s that stand beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkloom.inputs.cluster import Cluster, Node, Server
from sparkloom.render.k3s.config import LISTENS

Probe = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    spark: bool
    role: str  # in K3s: server or agent; nothing where the cluster is another one
    address: str  # on the management network, where the site says one
    interface: str

    @property
    def listens(self) -> tuple[int, ...]:
        return LISTENS[self.role] if self.role else ()


def every(cluster: Cluster) -> list[Machine]:
    """Sparks first. A server beside them is no concern of a site whose Kubernetes is there already."""
    ours = cluster.kubernetes.provider == "k3s"
    servers = {server.name: server for server in cluster.servers}
    serving = set(servers) or {cluster.nodes[0].name}
    sparks = {node.name for node in cluster.nodes}
    beside = [server for name, server in servers.items() if name not in sparks] if ours else []
    listed: list[Node | Server] = [*cluster.nodes, *beside]
    return [
        Machine(
            name=each.name,
            spark=each.name in sparks,
            role=("server" if each.name in serving else "agent") if ours else "",
            address=each.management_address or "",
            interface=(servers[each.name].management_interface if each.name in servers else None)
            or cluster.management_interface,
        )
        for each in listed
    ]


def reaches(machine: Machine, among: list[Machine]) -> list[Machine]:
    """Whom it talks to on the management network: a server to all, all to the servers. Sparks have their rails."""
    others = [other for other in among if other.name != machine.name and other.address]
    return [other for other in others if "server" in (machine.role, other.role)]
