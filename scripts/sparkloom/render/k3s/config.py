"""What K3s is told on each machine: config.yaml, registries.yaml, the unit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.image_recipes import HOST
from sparkloom.render.k3s import paths
from sparkloom.render.k3s.options import Options

PORT = 6443
# What K3s itself listens on, on every address or its own: the API, etcd and its peers, the kubelet, and the embedded
# registry, by which nodes share images.
LISTENS = {"server": (PORT, 2379, 2380, 10250, 5001), "agent": (10250, 5001)}
UNIT = Path(__file__).with_name("k3s.service")
SYSCTL, AUDIT = (Path(__file__).with_name(name) for name in ("kernel.conf", "audit-policy.yml"))
AUDITED = {
    "log-path": paths.AUDIT_LOG,
    "policy-file": paths.AUDIT,
    "log-maxage": 30,
    "log-maxbackup": 3,
    "log-maxsize": 20,
}
WIREGUARD = "wireguard-native"
HEADER = "# Written by sparkloom (role k3s); changed in the inventory, not here.\n"


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of a site: a Spark, or a server of K3s that stands beside them."""

    name: str
    node: str
    role: str  # in K3s: server or agent; nothing where the cluster is another one
    address: str  # on the management network, where the site says one
    interface: str
    first: bool = False
    fabric_index: int | None = None  # only a Spark has one

    @property
    def spark(self) -> bool:
        return self.fabric_index is not None

    @property
    def listens(self) -> tuple[int, ...]:
        return LISTENS.get(self.role, ())


def config(cluster: Cluster, members: list[Machine], member: Machine, options: Options) -> dict[str, Any]:
    """config.yaml of one machine; every key is a flag of the pinned release (flags.require)."""
    told: dict[str, Any] = {
        "node-name": member.node,
        "node-ip": member.address,
        # not the rails: flannel would take whichever interface has the default route
        "flannel-iface": member.interface,
        "token-file": paths.TOKEN,
        # the kubelet refuses other settings of the kernel than the unit made, in place of changing them itself
        "protect-kernel-defaults": True,
        "kubelet-arg": options.kubelet_args,
    }
    if member.fabric_index is not None:
        rails = ".".join(rail.name for rail in cluster.fabric.rails)
        told["node-label"] = [f"sparkloom/fabric-index={member.fabric_index}", f"sparkloom/rails={rails}"]
    if not member.first:
        told["server"] = f"https://{joined_at(members, options)}:{PORT}"
    if member.role == "agent":
        return told | options.agent_config
    return told | _server(cluster, members, member, options) | options.server_config


def _server(cluster: Cluster, members: list[Machine], member: Machine, options: Options) -> dict[str, Any]:
    """What must be the same on all servers, but for the first one's cluster-init."""
    servers = [other for other in members if other.role == "server"]
    named = [options.api_host, *(server.address for server in servers), *(server.node for server in servers)]
    told: dict[str, Any] = {
        "agent-token-file": paths.AGENT_TOKEN,
        "write-kubeconfig-mode": "0600",
        "tls-san": [name for name in dict.fromkeys(named) if name],
        # only possible at the very first start
        "secrets-encryption": True,
        "embedded-registry": True,
        "disable": options.disable,
        "kube-apiserver-arg": [f"audit-{name}={value}" for name, value in AUDITED.items()],
    }
    if len(members) > 1:
        told["flannel-backend"] = WIREGUARD  # prompts and keys cross the management network
    if member.first:
        told["cluster-init"] = True  # etcd even for one server: snapshots, and room for two more
    for key, flag in (("pod_cidr", "cluster-cidr"), ("service_cidr", "service-cidr")):
        if given := getattr(cluster.kubernetes, key):
            told[flag] = given
    return told


def joined_at(members: list[Machine], options: Options) -> str:
    return options.api_host or next(member.address for member in members if member.first)


# Where K3s' own images, Multus, the GPU's runtime and the shipped profiles' engines come from; a test compares. The
# last one is no registry: what a node has built is had by the others under that name, and by nobody else.
SHARED = ("docker.io", "ghcr.io", "nvcr.io", "quay.io", HOST)


def registries(options: Options) -> dict[str, Any]:
    """What our images come from is served by nodes that have it to the others; a site's own settings go on top.

    With `*` any pod's image of a private registry would be had from a node without that registry's password.
    """
    mine: dict[str, Any] = {"mirrors": {host: {} for host in SHARED}}
    return mine | options.registries | {"mirrors": {**mine["mirrors"], **options.registries.get("mirrors", {})}}


def text(data: dict[str, Any]) -> str:
    return HEADER + yaml.safe_dump(data, sort_keys=False)


def stamped(member: Machine) -> list[str]:
    """Files whose change asks for a restart. The first server made its token itself, and K3s would refuse another."""
    common = [paths.BINARY, paths.CONFIG, paths.REGISTRIES, paths.SYSCTL, paths.unit(member.role)]
    audit = [paths.AUDIT] if member.role == "server" else []
    tokens = [] if member.first else [paths.TOKEN]
    return [*common, *audit, *tokens]


def unit(member: Machine, options: Options) -> str:
    """Ours, not the installer's: it writes down what K3s is started with, and lets pods pin RDMA memory.

    The link of flannel's other backend goes first: its routes are narrower, and pods would go on talking through it.
    """
    encrypted = options.server_config.get("flannel-backend", WIREGUARD) == WIREGUARD
    return Template(UNIT.read_text(encoding="utf-8")).substitute(
        role=member.role,
        kind="notify" if member.role == "server" else "exec",
        search=paths.SEARCH,
        read=" ".join(stamped(member)),
        stamp=paths.STAMP,
        sysctl=paths.SYSCTL,
        other_link="flannel.1" if encrypted else "flannel-wg",
        k3s=paths.BINARY,
    )
