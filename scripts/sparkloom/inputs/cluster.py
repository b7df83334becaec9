"""What an inventory is, once read: the machines, their addresses and the rails between them."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints

from sparkloom.inputs.profile import Strict

Speed = Literal[200, 100, 50, 40, 25, 10]  # Gb/s of a link
SPEEDS: tuple[int, ...] = get_args(Speed)


def _network(text: str) -> str:
    try:
        ipaddress.IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is no IPv4 network: {error}; write one as 192.168.100.0/24") from None
    return text


def _on_a_rail(text: str) -> str:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        raise ValueError(f"'{text}' is no IPv4 address; write one as 192.168.100.50") from None
    return text


def _address(text: str) -> str:
    """An address or a host's name; digits and dots are an address, right or wrong."""
    if ":" in text or re.fullmatch(r"[\d.]+", text):
        try:
            ipaddress.ip_address(text)
        except ValueError:
            raise ValueError(f"'{text}' is no IP address; `ip -4 -br addr` on that machine shows its own") from None
    elif not re.fullmatch(
        r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.?", text
    ):
        raise ValueError(f"'{text}' is neither an IP address nor a host's name; write one as 192.168.1.11")
    return text


Address = Annotated[str, AfterValidator(_address)]
Network = Annotated[str, AfterValidator(_network)]
Guest = Annotated[str, AfterValidator(_on_a_rail)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


class Host(Strict):
    name: Name
    kubernetes_node: str = Field(description="the name the cluster knows it by; the inventory name unless given")
    management_address: Address | None = None


class Node(Host):
    fabric_index: Annotated[int, Field(ge=1, le=64)]


class Server(Host):
    """A machine that runs K3s' server: one of the Sparks, or one beside them."""

    management_interface: str | None = Field(default=None, description="where it is not called as on the Sparks")


Attach = Literal["vf", "pf"]
QUARTER = 2  # bits: a ring has three cables, each with a quarter of the rail's subnet
CAGES = {"f0np0": "f1np1", "f1np1": "f0np0"}  # how the ports of a card's two cages end, as systemd names them


class Port(Strict):
    pf: str = Field(description="network interface of the physical function, as enp1s0f0np0")
    pci: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]


class Rail(Port):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,8}$")]
    subnet: Network
    attach: Attach | None = Field(default=None, description="where this half is not attached as the fabric says")
    ports: dict[Name, Port] = Field(default={}, description="by node, where its cable is in another port")

    def at(self, node: str) -> Port:
        return self.ports.get(node, self)

    def joins(self, node: str) -> bool:
        """Whether that node has an end of it."""
        return True

    @property
    def half(self) -> str:
        """The entry of fabric.rails that it is, or is a part of."""
        return self.name


class Segment(Rail):
    """One half of one cable of a ring: two nodes and a subnet of their own. Derived, never written in a file."""

    half_of: str
    between: tuple[str, str]  # who has the cable in the port of the rail, and who in the other one

    def joins(self, node: str) -> bool:
        return node in self.between

    @property
    def half(self) -> str:
        return self.half_of


def other_port(port: Port) -> Port:
    """The same half of the card's other cage: 0 and 1 are its functions."""
    other = {"0": "1", "1": "0"}[port.pci[-1]]
    return Port(pf=port.pf[:-5] + CAGES[port.pf[-5:]], pci=port.pci[:-1] + other)


class Fabric(Strict):
    mtu: Annotated[int, Field(ge=1280, le=9216)] = 9000
    rail_gbit: Speed = Field(
        default=200, description="speed of each rail's link, as its port reports it; what checks expect follows"
    )
    attach: Attach = Field(default="vf", description="pods get a virtual function, or the whole port (pf)")
    rails: Annotated[list[Rail], Field(max_length=2)] = Field(description="empty where no cable leads to another node")
    ring: list[Name] = Field(
        default=[],
        description="three Sparks without a switch, along the cables: each one's port of `rails` leads to the next "
        "one's other port",
    )
    first_host: Annotated[int, Field(ge=1)] = 11
    vfs_per_rail: Annotated[int, Field(ge=1, le=16)] = 2
    serving_vf: Annotated[int, Field(ge=0)] = 0
    check_vf: Annotated[int, Field(ge=0)] | None = None
    lossless: bool = False
    private: bool = Field(
        default=True,
        description="only the Sparks' own addresses on a rail reach it; nftables on each node sees to that",
    )
    guests: list[Guest] = Field(
        default=[], description="addresses on the rails that are no Spark's and reach it too: a storage box, say"
    )
    hotplug: bool = Field(
        default=True,
        description="NVIDIA's hot-plug may take the ConnectX-7 off the bus while it sees no cable; off keeps it there, "
        "which takes 15 to 18 W a node",
    )
    attach_by: Literal["pci", "name"] = Field(
        default="pci",
        description="how a pod's function is found: by its place on the bus, or by its name where it has none there",
    )

    def whole(self, rail: Rail) -> bool:
        """Pods get the port itself: where firmware gives this half no virtual functions."""
        return (rail.attach or self.attach) == "pf"

    @property
    def segments(self) -> list[Rail]:
        """What has one subnet and one wire: the rails, and in a ring each half of each cable."""
        return [segment for rail in self.rails for segment in self.split(rail)]

    def split(self, rail: Rail) -> list[Rail]:
        if not self.ring:
            return [rail]
        subnets = ipaddress.IPv4Network(rail.subnet).subnets(prefixlen_diff=QUARTER)
        cables = zip(self.ring, [*self.ring[1:], self.ring[0]], strict=True)
        return [
            Segment(
                name=f"{rail.name}{number}",
                pf=rail.pf,
                pci=rail.pci,
                subnet=str(subnet),
                attach=rail.attach,
                ports={following: other_port(rail)},
                half_of=rail.name,
                between=(node, following),
            )
            for number, ((node, following), subnet) in enumerate(zip(cables, subnets, strict=False), 1)
        ]

    def rails_of(self, node: str) -> list[Rail]:
        """Those that end in this node; in a ring the ones to the next node first, the same on all of them."""
        mine = [segment for segment in self.segments if segment.joins(node)]
        return sorted(mine, key=lambda rail: isinstance(rail, Segment) and rail.between[0] != node)

    def rail_over(self, network: ipaddress.IPv4Network) -> Rail | None:
        """The rail whose addresses a network has in it, or lies in."""
        return next((rail for rail in self.rails if network.overlaps(ipaddress.IPv4Network(rail.subnet))), None)


class Destination(Strict):
    """Where an engine may connect to beside the rails and its cluster's DNS."""

    cidr: Network
    ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(default=[], description="TCP ports; all unless given")


class Kubernetes(Strict):
    provider: Literal["k3s", "existing"] = "k3s"
    kubeconfig: str | None = None
    pod_cidr: Network | None = Field(default=None, description="pod network, where it is not the distribution's own")
    service_cidr: Network | None = Field(default=None, description="Service network, likewise")


class Cluster(Strict):
    name: Name
    namespace: Name = "sparkloom"
    kubernetes: Kubernetes = Field(default_factory=Kubernetes)
    security_mode: Literal["privileged", "device-plugin"] = "privileged"
    rdma_resource: str = Field(
        default="",
        description="what an RDMA device plugin calls the rails' devices (device-plugin mode); unless given, NVIDIA's "
        "container runtime hands them out and no such plugin is needed",
    )
    egress: list[Destination] = Field(
        default=[],
        description="what engines may connect to on the cluster's network and beyond; nothing but DNS unless given",
    )
    management_interface: str = "enP7s7"
    expect_gb10: bool = True
    expect_gpu: bool = Field(
        default=True, description="ranks look for their GPU; false where engines run on processors"
    )
    model_store: str = Field(default="/var/lib/sparkloom/hub", description="folder on each node that holds the weights")
    nodes: Annotated[list[Node], Field(min_length=1, max_length=64)]
    servers: list[Server] = Field(default=[], description="the group k3s_servers of the inventory")
    several: bool = Field(default=False, description="the inventory has a list, `serve:`; read, never written")
    example: str = Field(default="", description="the file that marks the inventory as an example; likewise")
    fabric: Fabric
    images: dict[str, str] = Field(default={}, description="image -> digest, of the site's lock file")
    models: dict[str, str] = Field(default={}, description="model -> commit, of the site's lock file")

    __hash__ = object.__hash__  # one that is read once is planned once

    @property
    def called(self) -> dict[str, str]:
        """What the inventory calls nodes, by the cluster's names for them."""
        return {node.kubernetes_node: node.name for node in self.nodes}
