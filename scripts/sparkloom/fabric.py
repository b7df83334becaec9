"""The fabric plan: which virtual function, MAC and address each node has on each rail.

A rail is one PCIe half of a ConnectX-7 port. Host and pod use the same address on a virtual function:
without an address on the host its RoCE GID table holds only a link-local entry and queue pairs fail
with "Network is unreachable" (forum post on RoCE in K3s, 2026-04).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from sparkloom.cluster import Cluster, Node, Rail


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One virtual function of one node on one rail."""

    node: str
    rail: str
    pf: str
    pci: str
    vf: int
    interface: str
    mac: str
    address: str
    prefix: int
    mtu: int
    hca: str
    pf_hca: str

    @property
    def cidr(self) -> str:
        return f"{self.address}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class Plan:
    rails: tuple[str, ...]
    endpoints: tuple[Endpoint, ...]

    def of(self, node: str, vf: int) -> tuple[Endpoint, ...]:
        """The node's endpoints of one VF index, one per rail, in rail order."""
        return tuple(e for e in self.endpoints if e.node == node and e.vf == vf)


def plan(cluster: Cluster) -> Plan:
    """Every VF index in use, for every node and rail."""
    fabric = cluster.fabric
    stride = 16 if max(node.fabric_index for node in cluster.nodes) <= 16 else 64
    in_use = sorted({fabric.serving_vf} | ({fabric.check_vf} if fabric.check_vf is not None else set()))
    endpoints = tuple(
        _endpoint(cluster, node, number, rail, vf, stride)
        for node in cluster.nodes
        for number, rail in enumerate(fabric.rails)
        for vf in in_use
    )
    return Plan(tuple(rail.name for rail in fabric.rails), endpoints)


def _endpoint(cluster: Cluster, node: Node, rail_number: int, rail: Rail, vf: int, stride: int) -> Endpoint:
    network = ipaddress.IPv4Network(rail.subnet)
    address = network.network_address + cluster.fabric.first_host + node.fabric_index - 1 + stride * vf
    return Endpoint(
        node=node.name,
        rail=rail.name,
        pf=rail.pf,
        pci=rail.pci,
        vf=vf,
        interface=vf_interface(rail.pf, vf),
        mac=f"02:5b:{rail_number:02x}:00:{node.fabric_index:02x}:{vf:02x}",
        address=str(address),
        prefix=network.prefixlen,
        mtu=cluster.fabric.mtu,
        hca=hca(vf_interface(rail.pf, vf)),
        pf_hca=hca(re.sub(r"np\d+$", "", rail.pf)),
    )


def vf_interface(pf: str, vf: int) -> str:
    """systemd's name of a VF: the PF's without its port suffix, and the index (enp1s0f0np0 -> enp1s0f0v0)."""
    return f"{re.sub(r'np[0-9]+$', '', pf)}v{vf}"


def hca(interface: str) -> str:
    """rdma-core's name of the RDMA device over an interface (enp1s0f0v0 -> rocep1s0f0v0)."""
    return "roce" + interface.removeprefix("en")


def pod_interface(rail_number: int) -> str:
    """The rail's name inside a pod, pinned in the network annotation so that every rank sees the same."""
    return f"net{rail_number + 1}"
