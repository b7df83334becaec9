"""What an inventory is: the machines, their addresses and the rails between them.

`load(folder)` reads the plain data that the package needs out of an Ansible inventory folder; Ansible
itself reads the same files. `from_vars()` takes what an action plugin hands over, already resolved.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from sparkloom.base import document
from sparkloom.base.document import Document
from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO
from sparkloom.inputs import addressing
from sparkloom.inputs.profile import Strict

INVENTORIES = REPO / "inventories"
DEFAULT_INVENTORY = INVENTORIES / "gb10"
GROUP = "sparks"
SERVERS = "k3s_servers"  # Sparks or other machines; the first Spark where the group is empty


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


def load(folder: str | Path | None = None) -> Cluster:
    """Cluster of an inventory folder (or of its hosts.yml); the shipped gb10 example when none is given."""
    path = Path(folder) if folder else DEFAULT_INVENTORY
    if path.name == "hosts.yml":
        path = path.parent
    try:
        found = path.is_dir()
    except OSError:  # a name that no file system takes
        found = False
    if not found:
        raise InputError.single(
            str(path), "no such inventory folder; inventories/gb10 is the one to copy", rule="missing-file"
        )
    return _validated(_gather(path))


def from_vars(variables: Mapping[str, Any]) -> Cluster:
    """Cluster from `{cluster: {...}, fabric: {...}, nodes: [{name, ...}]}` as an action plugin passes it."""
    data = {
        **dict(variables["cluster"]),
        "fabric": variables["fabric"],
        "nodes": [_node(dict(n), i) for i, n in enumerate(variables["nodes"], 1)],
        "servers": [_server(dict(s)) for s in variables.get("servers", [])],
    }
    return _validated(Document("inventory variables", data))


def _validated(source: Document) -> Cluster:
    cluster = document.validate(Cluster, source)
    faults = addressing.faults(cluster)
    if faults:
        raise InputError([source.problem(fault.loc, str(fault), "fabric") for fault in faults])
    return cluster


def _gather(folder: Path) -> Document:
    hosts = document.load(folder / "hosts.yml")
    group_vars = folder / "group_vars" / "all"
    merged = Document(str(folder), {})
    for part in ("cluster", "fabric"):
        read = document.load(group_vars / f"{part}.yml")
        if not isinstance(read.data.get(part), dict):
            raise InputError.single(read.file, f"expected a mapping '{part}:'", rule="missing-key")
        target = () if part == "cluster" else (part,)
        _graft(merged, read, (part,), target)
        if part == "cluster":
            merged.data.update(read.data[part])
        else:
            merged.data[part] = read.data[part]
    merged.data["nodes"] = _hosts(hosts, merged)
    merged.data["servers"] = _servers(hosts)
    return merged


def _graft(merged: Document, read: Document, source: document.Loc, target: document.Loc) -> None:
    for loc, mark in read.marks.items():
        if loc[: len(source)] == source:
            new = (*target, *loc[len(source) :])
            merged.marks[new] = mark
            merged.files[new] = read.file


def _hosts(hosts: Document, merged: Document) -> list[dict[str, Any]]:
    loc: document.Loc = ("all", "children", GROUP, "hosts")
    node: Any = hosts.data
    for part in loc:
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or not node:
        raise InputError(
            [
                hosts.problem(
                    ("all",), f"no hosts under all.children.{GROUP}.hosts; list your Sparks there", "missing-key"
                )
            ]
        )
    for index, name in enumerate(node):
        _graft(merged, hosts, (*loc, name), ("nodes", index))
    return [_node({"name": name, **(values or {})}, index) for index, (name, values) in enumerate(node.items(), 1)]


def _servers(hosts: Document) -> list[dict[str, Any]]:
    """The group k3s_servers; a Spark's own variables stand in the group of the Sparks."""
    groups = hosts.data["all"]["children"]
    sparks = groups[GROUP]["hosts"]
    listed = (groups.get(SERVERS) or {}).get("hosts") or {}
    return [_server({"name": name, **(sparks.get(name) or {}), **(values or {})}) for name, values in listed.items()]


def _server(values: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": values["name"],
        "kubernetes_node": values.get("kubernetes_node", values["name"]),
        "management_address": values.get("management_address"),
        "management_interface": values.get("management_interface"),
    }


def _node(values: dict[str, Any], index: int) -> dict[str, Any]:
    """The few host variables that are ours; Ansible's own (ansible_*) stay Ansible's."""
    return {
        "name": values["name"],
        "kubernetes_node": values.get("kubernetes_node", values["name"]),
        "management_address": values.get("management_address"),
        "fabric_index": values.get("fabric_index", index),
    }
