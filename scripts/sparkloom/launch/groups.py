"""What belongs to each group of a fleet: names, ports, functions and addresses on the rails, Secrets, records, caches.

Pure data that follows from where the groups stand and from what is recorded of those that run. A site with one profile
has the names that it always had, and no later group takes or renames them.

Ports need no share-out: every rank is a pod with a network of its own, on the cluster's side and, through a function of
its own, on each rail. So two groups on one Spark may both listen at 30000 and at 20000; what tells them apart is the
pod's address, which no two have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from typing import Any

from sparkloom.inputs import group_name
from sparkloom.inputs.cluster import Cluster, Fabric, Node
from sparkloom.inputs.profile import FlagValue
from sparkloom.launch import fabric, ports
from sparkloom.launch.values import Origin, Setting
from sparkloom.onnode.now.labels import ONLY_KEY, ONLY_SERVED


@dataclass(frozen=True, slots=True)
class Placed:
    """One group where a plan puts it: what its launch takes from there, and not from the inventory alone.

    `idle_minutes`: it is on demand, and stops after so many without a request. `turns`: whoever says the same has the
    same Sparks and functions, and so the same addresses; one of them is awake at a time. Neither is told to its pods.
    """

    name: str
    profile: str
    nodes: tuple[str, ...]  # rank 0 first
    vf: int | None = None  # of each rail
    alias: str = ""
    port: int = 0  # of its API, as its engine has it
    fraction: float | None = None
    idle_minutes: int | None = None
    turns: str = ""
    only: bool = False  # it has the names of a site with one profile
    flags: Mapping[str, FlagValue] = field(default_factory=dict)  # flags for a share of the memory, an alias
    where: str = ""  # its line in the list; empty where the site has none
    overrides: tuple[str, ...] = ()  # by which the profile is cut over other Sparks than it says
    state: str = field(default="", compare=False)  # in a plan: new, stays, moves, changes, or what its start asks for
    stopped: str = field(default="", compare=False)  # by whom and when: no pod of it is wanted until it is started

    @classmethod
    def of(cls, data: Mapping[str, Any] | None) -> Placed | None:
        """From what `asdict` made of one, as it travels through Ansible; a group of a site without a list has none."""
        lists = ("nodes", "overrides")
        return cls(**{**data, **{key: tuple(data[key]) for key in lists}}) if data else None

    @property
    def on_demand(self) -> bool:
        return self.idle_minutes is not None

    @property
    def label(self) -> str:
        return group_name.label(self.name)

    @property
    def engine_key(self) -> str:
        """The Secret."""
        return ONLY_KEY if self.only else f"{self.label}-engine-key"

    @property
    def served(self) -> str:
        """The record of what was proved."""
        return ONLY_SERVED if self.only else f"{self.label}-served"

    def addresses(self, cluster: Cluster) -> dict[str, dict[str, str]]:
        """By node and rail, with the prefix: on the rails that join at least two of its Sparks, as `resolve` takes
        them. One rank needs no rail.
        """
        if self.vf is None:
            return {}
        between = [rail for rail in cluster.fabric.segments if sum(map(rail.joins, self.nodes)) > 1]
        return {
            node.name: {
                rail.name: f"{fabric.address(cluster, node, rail, self.vf)}/{IPv4Network(rail.subnet).prefixlen}"
                for rail in between
                if rail.joins(node.name)
            }
            for node in self.on(cluster)
        }

    def site(self, cluster: Cluster) -> Cluster:
        """As this group sees it."""
        return seated(cluster, self.vf)

    def on(self, cluster: Cluster) -> list[Node]:
        by_name = {node.name: node for node in cluster.nodes}
        return [by_name[name] for name in self.nodes]

    def over(self, settings: Sequence[Setting]) -> list[Setting]:
        """What the profile says, less what the list decides."""
        why = "serve: its share of Sparks that others may use too (fraction), or what clients ask for (alias)"
        told = [Setting(name, value, Origin("fleet", self.where, why)) for name, value in self.flags.items()]
        return [setting for setting in settings if setting.name not in self.flags] + told

    def as_dict(self, cluster: Cluster) -> dict[str, Any]:
        """As `sparkloom fleet plan --json` tells it."""
        many = len(self.nodes) > 1
        return {
            "name": self.name,
            "profile": self.profile,
            "alias": self.alias,
            "nodes": list(self.nodes),
            "fraction": self.fraction,
            "idle_minutes": self.idle_minutes,
            "turns": self.turns or None,
            "vf": self.vf,
            "addresses": self.addresses(cluster),
            "label": self.label,
            "service": f"{self.label}.{cluster.namespace}.svc",
            "port": self.port,
            "first_port": ports.RENDEZVOUS if many else None,
            "secrets": {"engine_key": self.engine_key, "group": f"{self.label}-group" if many else None},
            "records": {"record": f"{self.label}-record", "served": self.served},
        }


@dataclass(frozen=True, slots=True)
class Running(Placed):
    """One that runs where it is, with what only its cluster tells."""

    config_hash: str = field(default="", compare=False)  # of what was applied
    awake: bool = field(default=True, compare=False)  # a rank of it is wanted there
    whole: bool = field(default=True, compare=False)  # all its ranks are set up
    proved: str = field(default="", compare=False)  # the hash of its last proved start, looked at where it sleeps


def allocate(placed: Sequence[Placed], running: Mapping[str, Placed] | None = None) -> list[Placed]:
    """Who gets the names of a site with one profile: whoever has them, else the list's first if it is new."""
    known = running or {}
    holder = next((one.name for one in placed if one.name in known and known[one.name].only), "")
    first = holder or (placed[0].name if placed and placed[0].name not in known else "")
    return [replace(one, only=one.name == first) for one in placed]


def seated(cluster: Cluster, vf: int | None) -> Cluster:
    """The site as one group sees it: its own function of each rail is the one that goes into serving pods."""
    if vf is None or vf == cluster.fabric.serving_vf:
        return cluster
    rails: Fabric = cluster.fabric.model_copy(update={"serving_vf": vf})
    return cluster.model_copy(update={"fabric": rails})
