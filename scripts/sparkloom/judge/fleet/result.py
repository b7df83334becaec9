"""What a plan of a fleet says: each group with its place and its part of the memory, each Spark with who is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.judge.capacity.verdict import VERDICTS
from sparkloom.judge.fleet import needs
from sparkloom.judge.fleet.needs import Need
from sparkloom.launch.groups import Placed
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.resolve import resolve
from sparkloom.onnode.now import bars

PARTS = {
    "weights_gib": ("weights_gib_per_rank",),
    "draft_gib": ("draft_gib",),
    "states_gib": ("state_pool_gib", "speculative_pool_gib"),
    "kv_gib": ("kv_pool_gib",),
    "graphs_gib": ("graphs_gib",),
}


@dataclass(frozen=True, slots=True)
class Grouped:
    """One group in the plan; its state: new, stays, moves (it need not change, but must make room) or changes."""

    group: Placed
    need: Need
    fit: Fit
    was: tuple[str, ...]  # the Sparks that it has now

    def findings(self, cluster: Cluster) -> list[Finding]:
        """Of the profile; where the list tells its engine other flags, of the launch with these."""
        if not self.group.flags:
            return self.need.findings
        site = self.group.site(cluster)
        return needs.judged(resolve(self.need.loaded, site, seat=self.group), site)

    def as_dict(self, cluster: Cluster, usable: float) -> dict[str, Any]:
        loaded = self.need.loaded.profile
        parts = {name: _sum(self.fit, figures) for name, figures in PARTS.items()}
        whole = self.group.fraction * usable if self.group.fraction is not None else sum(parts.values())
        return {
            **self.group.as_dict(cluster),
            "model": loaded.model.id,
            "engine": loaded.engine.name,
            "parallel": self.need.parallel.as_dict(),
            "state": self.group.state,
            "was": list(self.was),
            "fits": self.fit.fits,
            "reason": self.fit.reason,
            "memory": {**{name: round(gib, 2) for name, gib in parts.items()}, "takes_gib": round(whole, 2)},
            "told": dict(self.group.flags),
        }


@dataclass(frozen=True, slots=True)
class FleetPlan:
    cluster: Cluster
    sparks: Mapping[str, Platform]
    fits: bool | None
    reason: str
    grouped: list[Grouped] = field(default_factory=list)
    unplaced: list[Need] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def one(self, name: str) -> Grouped:
        """The group of that name; refused where the plan has none, as when it does not pack."""
        known = [one.group.name for one in self.grouped]
        if name not in known:
            there = self.reason if self.fits is False else f"the list has no such group{did_you_mean(name, known)}"
            raise InputError.single("--group", f"{name}: {there}", rule="no-such-group")
        return self.grouped[known.index(name)]

    def as_dict(self) -> dict[str, Any]:
        """What `sparkloom fleet plan --json` prints."""
        usable = next(iter(self.sparks.values())).usable_gib
        told = [one.as_dict(self.cluster, usable) for one in self.grouped]
        unplaced = [
            {
                "name": need.name,
                "profile": need.entry.profile,
                "count": need.count,
                "fraction": need.entry.fraction,
                "idle_minutes": need.entry.idle_minutes,
                "turns": need.entry.turns,
            }
            for need in self.unplaced
        ]
        return {
            "cluster": self.cluster.name,
            "fits": self.fits,
            "verdict": VERDICTS[self.fits],
            "reason": self.reason,
            "advice": self.advice,
            "groups": told,
            "unplaced": unplaced,
            "gone": self.gone,
            "nodes": [self._node(name, told) for name in self.sparks],
            "findings": [finding.as_dict() for finding in self.findings],
        }

    def _node(self, name: str, told: Sequence[dict[str, Any]]) -> dict[str, Any]:
        spark = self.sparks[name]
        here = [
            {
                "group": one["name"],
                "rank": one["nodes"].index(name),
                "gib": one["memory"]["takes_gib"],
                "turns": one["turns"],
            }
            for one in told
            if name in one["nodes"]
        ]
        counted = bars.counted(here)
        alone = any(one["fraction"] is None for one in told if name in one["nodes"])
        left = 0.0 if alone else needs.room_mib(spark) / needs.MIB - sum(float(each["gib"]) for each in counted)
        return {
            "name": name,
            **needs.memory(spark),
            "groups": here,
            "left_gib": round(max(0.0, left), 2),
            "gpu": bars.gpu(len(counted), alone=alone),
        }


def _sum(fit: Fit, names: Sequence[str]) -> float:
    return sum(fit.memory[name].number for name in names if name in fit.memory)
