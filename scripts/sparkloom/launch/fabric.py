"""The fabric plan: which virtual function, MAC and address each node has on each rail.

A rail is one PCIe half of a ConnectX-7 port; in a ring without a switch, of the two ports at the ends of one cable.
Host and pod use the same address on a virtual function: without an address on the host its RoCE GID table holds only
a link-local entry and queue pairs fail with "Network is unreachable" (forum post on RoCE in K3s, 2026-04).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs import addressing
from sparkloom.inputs.cluster import Cluster, Fabric, Node, Rail, Segment

# What NVIDIA's and most switches' guides use for RoCE: DSCP 26 in the packets leads to priority 3, which is paused.
LOSSLESS_PRIORITY, LOSSLESS_DSCP = 3, 26
# The first NCCL that takes the port whose subnet the peer is in, as three ranks in a ring need it: net_ib/connect.cc of
# v2.30.7-1 has it, that of v2.30.4-1 has not.
RING_NCCL = "2.30.7"
# The first line of files that are made of the plan: by it our netplan file is told from everybody else's.
HEADER = "# Written by sparkloom from the inventory's fabric.yml; changed there, not here.\n"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One virtual function of one node on one rail, or the whole port: that has the MAC it was made with, not ours."""

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
    attachment: str
    half: str  # the entry of fabric.rails that its rail is, or is a part of

    @property
    def whole(self) -> bool:
        return self.interface == self.pf

    @property
    def cidr(self) -> str:
        return f"{self.address}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class Attachment:
    """How pods ask for one VF index of one rail: one for all nodes whose cable is in the same port.

    `routes`: in a ring, address and gateway of what a pod reaches over this port beside the port's own subnet.
    """

    name: str
    rail: str
    vf: int
    interface: str
    mtu: int
    subnet: str
    place: str = ""  # in sysfs; empty where functions are found by their name
    routes: tuple[tuple[str, str], ...] = ()
    private: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    rails: tuple[str, ...]
    endpoints: tuple[Endpoint, ...]
    attachments: tuple[Attachment, ...]
    nodes: tuple[str, ...]
    serving_vf: int
    check_vf: int | None

    def at_host(self) -> tuple[Endpoint, ...]:
        """Per node and rail the function that stays on the host; where none does, the one that pods get."""
        kept = {(e.node, e.rail): e for e in self.endpoints if e.vf == self.serving_vf}
        return tuple((kept | {(e.node, e.rail): e for e in self.endpoints if e.vf == self.check_vf}).values())

    def of_pods(self) -> tuple[int, ...]:
        """Functions that pods may get."""
        return tuple(sorted({e.vf for e in self.endpoints} - {self.check_vf}))

    def of(self, node: str, vf: int | None = None) -> tuple[Endpoint, ...]:
        """The node's endpoints, of one VF index or of all, one per rail that it has an end of, in rail order."""
        if node not in self.nodes:
            message = f"node '{node}' is not in the fabric plan{did_you_mean(node, self.nodes)}"
            raise InputError.single("hosts.yml", f"{message}; list it under sparks.hosts", rule="node-outside-plan")
        return tuple(e for e in self.endpoints if e.node == node and vf in (None, e.vf))


@lru_cache(maxsize=8)
def plan(cluster: Cluster) -> Plan:
    """Every VF index in use, for every node and rail. Refuses what would make two of anything the same."""
    faults = addressing.faults(cluster)
    if faults:
        raise InputError(p for f in faults for p in InputError.single(cluster.name, str(f), rule="fabric").problems)
    fabric = cluster.fabric
    site = sha256(cluster.name.encode()).digest()[:2]
    numbers = {rail.name: number for number, rail in enumerate(fabric.segments)}
    return Plan(
        rails=tuple(numbers),
        endpoints=tuple(
            _endpoint(cluster, node, rail, vf, mac(site, numbers[rail.name], vf, node.fabric_index))
            for node in cluster.nodes
            for rail in fabric.rails_of(node.name)
            for vf in addressing.functions_in_use(cluster, rail)
        ),
        attachments=attachments(cluster),
        nodes=tuple(node.name for node in cluster.nodes),
        serving_vf=fabric.serving_vf,
        check_vf=fabric.check_vf,
    )


def attachments(cluster: Cluster) -> tuple[Attachment, ...]:
    fabric = cluster.fabric
    return tuple(
        Attachment(
            name=attachment_name(fabric, rail, rail.at(node).pf, vf),
            rail=rail.name,
            vf=vf,
            interface=interface(fabric, rail, rail.at(node).pf, vf),
            mtu=fabric.mtu,
            subnet=rail.subnet,
            place=place(rail.at(node).pci, None if fabric.whole(rail) else vf) if fabric.attach_by == "pci" else "",
            routes=routes(cluster, rail, node, vf) if vf != fabric.check_vf else (),
            private=fabric.private,
        )
        for rail in fabric.segments
        for vf in addressing.functions_in_use(cluster, rail)
        for node in {rail.at(node.name).pf: node.name for node in cluster.nodes if rail.joins(node.name)}.values()
    )


def routes(cluster: Cluster, rail: Rail, node: str, vf: int) -> tuple[tuple[str, str], ...]:
    """In a ring: the next node's own address (that of its first rail), over the cable that leads there.

    The ranks meet at one address each (rendezvous, Gloo, queues, supervisors), and every pair has a cable: with this
    route on each, every rank reaches both others' over their own cable, and no packet is forwarded. The node before
    has its own address on the cable that this one shares.
    """
    fabric = cluster.fabric
    first = fabric.rails_of(node)[0]
    if not isinstance(rail, Segment) or rail.name != first.name:
        return ()
    following = next(each for each in cluster.nodes if each.name == rail.between[1])
    own = fabric.rails_of(following.name)[0]
    return ((f"{address(cluster, following, own, vf)}/32", address(cluster, following, rail, vf)),)


def address(cluster: Cluster, node: Node, rail: Rail, vf: int | None = None) -> str:
    """A node's address on a rail; that of the serving function unless told otherwise."""
    fabric = cluster.fabric
    width = addressing.block(max(node.fabric_index for node in cluster.nodes))
    function = fabric.serving_vf if vf is None else vf
    number = addressing.address(fabric, IPv4Network(rail.subnet), node.fabric_index, function, width)
    return str(IPv4Address(number))


def place(pci: str, vf: int | None) -> str:
    """Where sysfs has a function (None: the whole port), by its port's PCI address and its number, not its name.

    The function's own address follows from the card's firmware and is not known here. host-device (0.8 to 1.9) takes a
    path only if it begins with /sys/devices/, and resolves the rest of it afterwards.
    """
    return f"/sys/devices/../bus/pci/devices/{pci}" + ("" if vf is None else f"/virtfn{vf}")


def _endpoint(cluster: Cluster, node: Node, rail: Rail, vf: int, mac_address: str) -> Endpoint:
    port, whole = rail.at(node.name), cluster.fabric.whole(rail)
    pf_hca = hca(port.pf, port.pci)
    return Endpoint(
        node=node.name,
        rail=rail.name,
        pf=port.pf,
        pci=port.pci,
        vf=vf,
        interface=interface(cluster.fabric, rail, port.pf, vf),
        mac="" if whole else mac_address,
        address=address(cluster, node, rail, vf),
        prefix=IPv4Network(rail.subnet).prefixlen,
        mtu=cluster.fabric.mtu,
        hca=pf_hca if whole else f"{pf_hca}v{vf}",
        pf_hca=pf_hca,
        attachment=attachment_name(cluster.fabric, rail, port.pf, vf),
        half=rail.half,
    )


def mac(site: bytes, rail: int, vf: int, index: int) -> str:
    """Locally administered. The site's two bytes keep two clusters on one switch apart, the rest one cluster's VFs."""
    return f"02:5b:{site[0]:02x}:{site[1]:02x}:{rail << 4 | vf:02x}:{index:02x}"


def interface(fabric: Fabric, rail: Rail, pf: str, vf: int) -> str:
    return pf if fabric.whole(rail) else vf_interface(pf, vf)


def vf_interface(pf: str, vf: int) -> str:
    """systemd's name of a VF: the PF's without its port suffix, and the index (enp1s0f0np0 -> enp1s0f0v0)."""
    return f"{re.sub(r'np[0-9]+$', '', pf)}v{vf}"


def hca(pf: str, pci: str) -> str:
    """rdma-core's name of a PF's RDMA device (enp1s0f0np0 -> rocep1s0f0), which follows from its PCI address."""
    if addressing.predicted(pf):
        return "roce" + re.sub(r"np[0-9]+$", "", pf).removeprefix("en")
    domain, bus, slot, function = (int(part, 16) for part in re.split("[:.]", pci))
    return f"roce{f'P{domain}' if domain else ''}p{bus}s{slot}f{function}"


def pod_interface(rail_number: int) -> str:
    """The rail's name inside a pod, pinned in the network annotation so that every rank sees the same."""
    return f"net{rail_number + 1}"


def attachment_name(fabric: Fabric, rail: Rail, pf: str, vf: int) -> str:
    """One for all nodes; those whose cable is in another port have one of that port."""
    name = f"rail-{rail.name}-{'pf' if fabric.whole(rail) else f'vf{vf}'}"
    return name if pf == rail.pf else f"{name}-{pf.lower()}"


def netplan(plan: Plan, node: str) -> dict[str, Any]:
    """Netplan data of one node: PFs up and without address, what pods get with the address that they will use.

    networkd, not NetworkManager: it configures a VF again by itself when a pod gives it back.
    """
    mine = plan.of(node)
    off = dict.fromkeys(("dhcp4", "dhcp6", "accept-ra"), False)
    quiet: dict[str, Any] = {"renderer": "networkd", **off, "optional": True}
    parents = {e.pf: {**quiet, "link-local": [], "mtu": e.mtu} for e in mine}
    functions = {e.interface: {**quiet, "link-local": [], "mtu": e.mtu, "addresses": [e.cidr]} for e in mine}
    return {"network": {"version": 2, "ethernets": {**parents, **functions}}}


def as_dict(plan: Plan) -> dict[str, Any]:
    """The plan as `sparkloom fabric --json` prints it."""
    keys = ("rail", "pf", "pci", "pf_hca", "vf", "interface", "mac", "address", "prefix", "mtu", "hca")
    return {
        "rails": list(plan.rails),
        "nodes": [
            {"name": node, "endpoints": [{key: getattr(e, key) for key in keys} for e in plan.of(node)]}
            for node in plan.nodes
        ],
        "nads": [
            {"name": a.name, "rail": a.rail, "vf": a.vf, "device": a.interface, "mtu": a.mtu, "subnet": a.subnet}
            for a in plan.attachments
        ],
    }
