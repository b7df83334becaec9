"""plan(serving, cluster, running): where each group goes and what is its own; or why not all can, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.fleet_record import Running
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.profile import FlagValue
from sparkloom.inputs.serving import Serving
from sparkloom.judge.capacity import search
from sparkloom.judge.fleet import advice, needs, packing
from sparkloom.judge.fleet.needs import Need
from sparkloom.launch import groups
from sparkloom.launch.groups import Group
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.resolve import Launch, resolve
from sparkloom.launch.seat import Seat

PARTS = {
    "weights_gib": ("weights_gib_per_rank",),
    "draft_gib": ("draft_gib",),
    "states_gib": ("state_pool_gib", "speculative_pool_gib"),
    "kv_gib": ("kv_pool_gib",),
    "graphs_gib": ("graphs_gib",),
}
RULES = ("fleet-does-not-fit", "fleet-undecided", "fleet-uncertain")  # what the list itself can be blamed for
UNDECIDED = "too many ways to look at all of them; give some groups their Sparks by nodes: [...]"


@dataclass(frozen=True, slots=True)
class Grouped:
    """One group in the plan; `state`: new, stays, moves (it need not change, but must make room) or changes."""

    group: Group
    need: Need
    fit: Fit
    told: Mapping[str, FlagValue]
    state: str
    was: tuple[str, ...]

    def launched(self, cluster: Cluster) -> tuple[Launch, Cluster]:
        """Its launch where the plan puts it, and the site as this group sees it."""
        site = groups.seated(cluster, self.group.vf)
        seat = Seat(self.group.name, self.group.nodes, self.group.engine_key, self.told, self.need.where)
        return resolve(self.need.loaded, site, seat=seat), site

    def findings(self, cluster: Cluster) -> list[Finding]:
        """Of the profile; where the list tells its engine other flags, of the launch with these."""
        return needs.judged(*self.launched(cluster)) if self.told else self.need.findings

    def as_dict(self, usable: float) -> dict[str, Any]:
        loaded = self.need.loaded.profile
        parts = {name: _sum(self.fit, figures) for name, figures in PARTS.items()}
        whole = self.group.fraction * usable if self.group.fraction is not None else sum(parts.values())
        return {
            **self.group.as_dict(),
            "model": loaded.model.id,
            "engine": loaded.engine.name,
            "parallel": self.need.parallel.as_dict(),
            "state": self.state,
            "was": list(self.was),
            "fits": self.fit.fits,
            "reason": self.fit.reason,
            "memory": {**{name: round(gib, 2) for name, gib in parts.items()}, "takes_gib": round(whole, 2)},
            "told": dict(self.told),
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

    @property
    def verdict(self) -> str:
        return {True: "fits", None: "uncertain", False: "does-not-fit"}[self.fits]

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
        told = [one.as_dict(usable) for one in self.grouped]
        return {
            "cluster": self.cluster.name,
            "fits": self.fits,
            "verdict": self.verdict,
            "reason": self.reason,
            "advice": self.advice,
            "groups": told,
            "unplaced": [
                {"name": need.name, "profile": need.entry.profile, "count": need.count, "fraction": need.entry.fraction}
                for need in self.unplaced
            ],
            "gone": self.gone,
            "nodes": [self._node(name, told) for name in self.sparks],
            "findings": [finding.as_dict() for finding in self.findings],
        }

    def _node(self, name: str, told: Sequence[dict[str, Any]]) -> dict[str, Any]:
        spark = self.sparks[name]
        here = [
            {"group": one["name"], "rank": one["nodes"].index(name), "gib": one["memory"]["takes_gib"]}
            for one in told
            if name in one["nodes"]
        ]
        alone = any(one["fraction"] is None for one in told if name in one["nodes"])
        free, guard = needs.free_gib(spark), float(constants.GUARD_FLOOR_GIB.value or 0)
        left = 0.0 if alone else needs.room_mib(spark) / needs.MIB - sum(float(each["gib"]) for each in here)
        return {
            "name": name,
            "usable_gib": spark.usable_gib,
            "free_gib": round(free, 2),
            "guard_gib": guard,
            "groups": here,
            "left_gib": round(max(0.0, left), 2),
            "gpu": "free" if not here else "one group's" if alone else f"{len(here)} share it",
        }


def plan(serving: Serving, cluster: Cluster, running: Mapping[str, Running] | None = None) -> FleetPlan:
    """`running`: what is recorded of the groups that run; they stay where they are unless they must not."""
    wanted, known = needs.of(serving, cluster), running or {}
    sparks = needs.platforms(cluster)
    gone = sorted(set(known) - {need.name for need in wanted})
    blank = FleetPlan(cluster, sparks, False, "", unplaced=wanted, gone=gone)
    problem = pose(wanted, cluster, sparks, known)
    try:
        if problem is None:
            return _refused(blank, advice.of(serving, wanted, cluster, sparks), sparks)
        seats = packing.solve(problem)
        if seats is None:
            return _refused(blank, advice.of(serving, wanted, cluster, sparks), sparks)
    except packing.Undecided as error:
        return _undecided(blank, error)
    return _packed(blank, seats, known)


def pose(
    wanted: Sequence[Need], cluster: Cluster, sparks: Mapping[str, Platform], known: Mapping[str, Running] | None = None
) -> packing.Problem | None:
    """The list as plain data; None where an entry cannot be placed whatever the others do."""
    if any(need.launch is None for need in wanted):
        return None
    asked = tuple(needs.want(need, sparks, need.entry.fraction) for need in wanted)
    held = {need.name: _held(need, known[need.name]) for need in wanted if known and need.name in known}
    return packing.Problem(needs.spots(sparks), asked, groups.functions(cluster), held)


def _held(need: Need, running: Running) -> packing.Held:
    same = (running.profile, len(running.nodes), running.fraction) == (
        need.entry.profile,
        need.count,
        need.entry.fraction,
    )
    return packing.Held(packing.Seat(running.nodes, running.vf), same)


def _packed(blank: FleetPlan, seats: Mapping[str, packing.Seat], known: Mapping[str, Running]) -> FleetPlan:
    placed = [
        groups.Placed(
            need.name, need.entry.profile, need.alias, seats[need.name].nodes, seats[need.name].vf,
            need.launch.port if need.launch else 0, need.entry.fraction,
        )
        for need in blank.unplaced
    ]  # fmt: skip
    allocated = groups.allocate(placed, blank.cluster, known)
    grouped = [
        _grouped(need, group, blank.sparks, known.get(need.name))
        for need, group in zip(blank.unplaced, allocated, strict=True)
    ]
    unsure = [one for one in grouped if one.fit.fits is None]
    findings = [finding for one in grouped for finding in one.findings(blank.cluster)]
    findings += [_uncertain(one) for one in unsure]
    reason = f"{', '.join(one.group.name for one in unsure)}: uncertain, see below" if unsure else ""
    return FleetPlan(
        blank.cluster, blank.sparks, None if unsure else True, reason, grouped, [], blank.gone, [], findings
    )


def _grouped(need: Need, group: Group, sparks: Mapping[str, Platform], running: Running | None) -> Grouped:
    holds = [need.held(sparks[node], need.entry.fraction) for node in group.nodes]
    worst = min(holds, key=lambda hold: {None: 0, True: 1}.get(hold.fit.fits, -1))
    told = {**worst.told, **need.named()}
    if running is None:
        return Grouped(group, need, worst.fit, told, "new", ())
    held = _held(need, running)
    stays = held.seat == packing.Seat(group.nodes, group.vf)
    state = "changes" if not held.same else "stays" if stays else "moves"
    return Grouped(group, need, worst.fit, told, state, running.nodes)


def _uncertain(one: Grouped) -> Finding:
    fix = "run playbooks/preflight.yml, which measures what is free on this site's nodes"
    return Finding(one.need.where, "fleet-uncertain", f"{one.group.name}: {one.fit.reason}", "", fix, "warning")


def _refused(blank: FleetPlan, helps: list[str], sparks: Mapping[str, Platform]) -> FleetPlan:
    reasons = [text for need in blank.unplaced if (text := _alone(need, sparks, len(blank.cluster.nodes)))]
    reason = "; ".join(reasons) or _crowded(blank.unplaced, sparks)
    where = next((need.where for need in blank.unplaced if _alone(need, sparks, 0)), "")
    where = where or (blank.unplaced[-1].where if blank.unplaced else "")
    fix = "; or ".join(helps) or "fewer or smaller models, or more Sparks"
    finding = Finding(where, "fleet-does-not-fit", reason, "", fix)
    return FleetPlan(
        blank.cluster, sparks, False, reason, [], blank.unplaced, blank.gone, helps, [*_own(blank), finding]
    )


def _undecided(blank: FleetPlan, error: packing.Undecided) -> FleetPlan:
    where = blank.unplaced[-1].where
    finding = Finding(where, "fleet-undecided", f"{error}: {UNDECIDED}", "", "pin the largest groups first")
    return FleetPlan(
        blank.cluster, blank.sparks, False, f"{error}: {UNDECIDED}", [], blank.unplaced, blank.gone, [],
        [*_own(blank), finding],
    )  # fmt: skip


def _own(blank: FleetPlan) -> list[Finding]:
    return [finding for need in blank.unplaced for finding in need.findings]


def _alone(need: Need, sparks: Mapping[str, Platform], nodes: int) -> str:
    """Why this group would not even fit if it were alone; empty where it would."""
    if need.launch is None:
        return f"{need.name}: {need.barred}"
    asked = needs.want(need, sparks, need.entry.fraction)
    there = need.entry.pinned or tuple(sparks)
    if sum(node in asked.able for node in there) >= need.count:
        return ""
    node = next(node for node in there if node not in asked.able)
    text = f"{need.name} does not fit {'a Spark' if need.count == 1 else f'{need.count} Sparks'}"
    text += f" at fraction {need.entry.fraction:g}" if need.entry.fraction is not None else ""
    text += f": {need.held(sparks[node], need.entry.fraction).fit.reason}"
    change = search.smallest(need.view(sparks[node]), nodes) if need.entry.fraction is None and nodes else None
    return text + (f" (in the profile: {change.text})" if change else "")


def _crowded(wanted: Sequence[Need], sparks: Mapping[str, Platform]) -> str:
    """What is asked for together, beside what there is."""
    whole = sum(need.count for need in wanted if need.entry.fraction is None)
    shares = [(need.count, need.entry.fraction) for need in wanted if need.entry.fraction is not None]
    parts = [f"{whole} of their own"] if whole else []
    parts += [f"{sum(count for count, _ in shares)} shares that sum to {sum(n * f for n, f in shares):.2f}"] * bool(shares)
    spark = next(iter(sparks.values()))
    most = needs.room_mib(spark) / needs.MIB / spark.usable_gib
    text = f"{len(wanted)} groups ask for {' and '.join(parts)}; there are {len(sparks)} Sparks"
    return text + (f", of which {most:.2f} each may be shared (the host and its memory guard have the rest)" * bool(shares))


def _sum(fit: Fit, names: Sequence[str]) -> float:
    return sum(float(fit.memory[name].value or 0) for name in names if name in fit.memory)

