"""What an inventory is, once read: the machines, their addresses and the rails between them."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from sparkloom.inputs.profile import Strict


def _network(text: str) -> str:
    try:
        ipaddress.IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is no IPv4 network: {error}; write one as 192.168.100.0/24") from None
    return text


Network = Annotated[str, AfterValidator(_network)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


class Node(Strict):
    name: Name
    kubernetes_node: str = Field(description="the name the cluster knows it by; the inventory name unless given")
    management_address: str | None = None
    fabric_index: Annotated[int, Field(ge=1, le=64)]


class Server(Strict):
    """A machine that runs K3s' server: one of the Sparks, or one beside them."""

    name: Name
    kubernetes_node: str
    management_address: str | None = None
    management_interface: str | None = Field(default=None, description="where it is not called as on the Sparks")


class Rail(Strict):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,8}$")]
    pf: str = Field(description="network interface of the physical function, as enp1s0f0np0")
    pci: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
    subnet: Network


class Fabric(Strict):
    mtu: Annotated[int, Field(ge=1280, le=9216)] = 9000
    rails: Annotated[list[Rail], Field(min_length=1, max_length=2)]
    first_host: Annotated[int, Field(ge=1)] = 11
    vfs_per_rail: Annotated[int, Field(ge=1, le=16)] = 2
    serving_vf: Annotated[int, Field(ge=0)] = 0
    check_vf: Annotated[int, Field(ge=0)] | None = None
    lossless: bool = False
    attach_by: Literal["pci", "name"] = Field(
        default="pci",
        description="how a pod's function is found: by its place on the bus, or by its name where it has none there",
    )


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
        default="rdma/hca_shared_devices_a",
        description="what the RDMA device plugin calls the rails' devices (device-plugin mode)",
    )
    management_interface: str = "enP7s7"
    expect_gb10: bool = True
    model_store: str = Field(default="/var/lib/sparkloom/hub", description="folder on each node that holds the weights")
    nodes: Annotated[list[Node], Field(min_length=1, max_length=64)]
    servers: list[Server] = Field(default=[], description="the group k3s_servers of the inventory")
    fabric: Fabric
