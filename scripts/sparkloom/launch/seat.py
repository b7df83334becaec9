"""Where one group of a fleet is put: what its launch takes from the plan, and not from the inventory alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sparkloom.inputs.cluster import Cluster, Node
from sparkloom.inputs.profile import FlagValue
from sparkloom.launch import groups
from sparkloom.launch.values import Origin, Setting


@dataclass(frozen=True, slots=True)
class Seat:
    """`told`: flags that follow from the list: a share of the memory, an alias; `where`: its line there."""

    group: str
    nodes: tuple[str, ...]  # rank 0 first
    engine_key: str  # the Secret
    told: Mapping[str, FlagValue] = field(default_factory=dict)
    where: str = ""
    fraction: float | None = None
    vf: int | None = None
    overrides: tuple[str, ...] = ()  # by which the profile is cut over other Sparks than it says

    @classmethod
    def told_as(cls, data: Mapping[str, Any]) -> Seat:
        """From what `as_dict` made of one, as it travels through Ansible."""
        return cls(**{**data, "nodes": tuple(data["nodes"]), "overrides": tuple(data["overrides"])})

    def as_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    def site(self, cluster: Cluster) -> Cluster:
        """As this group sees it."""
        return groups.seated(cluster, self.vf)

    def of(self, cluster: Cluster) -> list[Node]:
        by_name = {node.name: node for node in cluster.nodes}
        return [by_name[name] for name in self.nodes]

    def over(self, settings: Sequence[Setting]) -> list[Setting]:
        """What the profile says, less what the list decides."""
        why = "serve: its share of Sparks that others may use too (fraction), or what clients ask for (alias)"
        told = [Setting(name, value, Origin("fleet", self.where, why)) for name, value in self.told.items()]
        return [setting for setting in settings if setting.name not in self.told] + told
