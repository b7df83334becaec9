"""What belongs to each group of a fleet: names, ports, functions and addresses on the rails, Secrets, records, caches.

Pure data that follows from where the groups stand and from what is recorded of those that run. A site with one profile
has the names that it always had, and no later group takes or renames them.

Ports need no share-out: every rank is a pod with a network of its own, on the cluster's side and, through a function of
its own, on each rail. So two groups on one Spark may both listen at 30000 and at 20000; what tells them apart is the
pod's address, which no two have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Any

from sparkloom.inputs import functions as rails_functions
from sparkloom.inputs import group_name
from sparkloom.inputs.cluster import Cluster, Fabric
from sparkloom.inputs.fleet_record import Running
from sparkloom.launch import fabric, ports
from sparkloom.onnode.now.labels import ONLY_KEY, ONLY_SERVED

functions = rails_functions.of_pods  # which a group may get, the inventory's own first


@dataclass(frozen=True, slots=True)
class Placed:
    """One group where a plan puts it."""

    name: str
    profile: str
    alias: str
    nodes: tuple[str, ...]  # rank 0 first
    vf: int | None
    port: int  # of its API, as its engine has it
    fraction: float | None = None
    idle_minutes: int | None = None
    turns: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """`addresses`: by node and rail, with the prefix; empty for one rank, which needs no rail.

    `idle_minutes`: it is on demand, and stops after so many without a request. `turns`: whoever says the same has the
    same Sparks and functions, and so the same addresses; one of them is awake at a time. Neither is told to its pods.
    """

    name: str
    profile: str
    alias: str
    nodes: tuple[str, ...]
    fraction: float | None
    label: str
    service: str
    port: int
    first_port: int | None
    vf: int | None
    engine_key: str
    group_secret: str
    record: str
    served: str
    addresses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    idle_minutes: int | None = None
    turns: str = ""

    @property
    def on_demand(self) -> bool:
        return self.idle_minutes is not None

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "profile": self.profile,
            "alias": self.alias,
            "nodes": list(self.nodes),
            "fraction": self.fraction,
            "idle_minutes": self.idle_minutes,
            "turns": self.turns or None,
            "vf": self.vf,
            "addresses": {node: dict(rails) for node, rails in self.addresses.items()},
            "label": self.label,
            "service": self.service,
            "port": self.port,
            "first_port": self.first_port,
            "secrets": {"engine_key": self.engine_key, "group": self.group_secret or None},
            "records": {"record": self.record, "served": self.served},
        }


def allocate(placed: Sequence[Placed], cluster: Cluster, running: Mapping[str, Running] | None = None) -> list[Group]:
    """Everything of each group, in the order of the list."""
    known = running or {}
    first = _first(placed, known)
    return [_group(one, cluster, only=one.name == first) for one in placed]


def _first(placed: Sequence[Placed], known: Mapping[str, Running]) -> str:
    """Who gets the names of a site with one profile: whoever has them, else the list's first if it is new."""
    holder = next((one.name for one in placed if one.name in known and known[one.name].engine_key == ONLY_KEY), "")
    return holder or (placed[0].name if placed and placed[0].name not in known else "")


def _group(one: Placed, cluster: Cluster, *, only: bool) -> Group:
    label = group_name.label(one.name)
    many = len(one.nodes) > 1
    return Group(
        name=one.name,
        profile=one.profile,
        alias=one.alias,
        nodes=one.nodes,
        fraction=one.fraction,
        label=label,
        service=f"{label}.{cluster.namespace}.svc",
        port=one.port,
        first_port=ports.RENDEZVOUS if many else None,
        vf=one.vf,
        engine_key=ONLY_KEY if only else f"{label}-engine-key",
        group_secret=f"{label}-group" if many else "",
        record=f"{label}-record",
        served=ONLY_SERVED if only else f"{label}-served",
        addresses=_addresses(one, cluster) if many and one.vf is not None else {},
        idle_minutes=one.idle_minutes,
        turns=one.turns,
    )


def _addresses(one: Placed, cluster: Cluster) -> dict[str, dict[str, str]]:
    """On the rails that join at least two of its Sparks, as `resolve` takes them."""
    by_name = {node.name: node for node in cluster.nodes}
    chosen = [by_name[name] for name in one.nodes]
    between = [rail for rail in cluster.fabric.segments if sum(rail.joins(name) for name in one.nodes) > 1]
    return {
        node.name: {
            rail.name: f"{fabric.address(cluster, node, rail, one.vf)}/{IPv4Network(rail.subnet).prefixlen}"
            for rail in between
            if rail.joins(node.name)
        }
        for node in chosen
    }


def seated(cluster: Cluster, vf: int | None) -> Cluster:
    """The site as one group sees it: its own function of each rail is the one that goes into serving pods."""
    if vf is None or vf == cluster.fabric.serving_vf:
        return cluster
    rails: Fabric = cluster.fabric.model_copy(update={"serving_vf": vf})
    return cluster.model_copy(update={"fabric": rails})
