"""From what a site runs to what its list says: each group with its seat, and in which waves they end and start.

What playbooks/serve.yml does, as plain data. A site with one profile is one group without a seat, whatever else stands
there ends when somebody said so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding, errors
from sparkloom.inputs import fleet_record, profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.fleet_record import Running
from sparkloom.inputs.serving import called, whole
from sparkloom.judge.fleet import FleetPlan, steps
from sparkloom.judge.fleet.result import Grouped
from sparkloom.launch import downloads, groups
from sparkloom.render.manifests import names
from sparkloom.site import client, fleet

RENEWS = "renews"  # stands where it should, and what it is started with has changed
WHAT = {
    steps.STAYS: "stays as it is",
    "new": "starts",
    "moves": "moves there",
    "changes": "is replaced",
    RENEWS: "starts anew, as its profile or the inventory has changed",
}


@dataclass(frozen=True, slots=True)
class Member:
    """One group as the roles take it; `seat` is empty for the one of a site with one profile."""

    name: str
    profile: str
    nodes: tuple[str, ...]
    state: str
    seat: Mapping[str, Any] = field(default_factory=dict)
    served: str = groups.ONLY_SERVED

    @property
    def alone(self) -> bool:
        """Whether it has its Sparks for itself."""
        return self.seat.get("fraction") is None

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "label": names.marked(self.name),
            "profile": self.profile,
            "nodes": list(self.nodes),
            "state": self.state,
            "alone": self.alone,
            "seat": dict(self.seat),
            "served": self.served,
        }


@dataclass(frozen=True, slots=True)
class Rollout:
    members: Sequence[Member]
    waves: Sequence[steps.Wave]
    findings: Sequence[Finding] = ()
    said: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Groups by name in the waves are whole groups here: Ansible loops over them."""
        told = {one.name: one.as_dict() for one in self.members}
        waves = [
            {
                **wave.as_dict(),
                "stop": [names.marked(name) for name in wave.stop],
                "start": [told[n] for n in wave.start],
            }
            for wave in self.waves
        ]
        return {"groups": list(told.values()), "waves": waves}


def alone(name: str, cluster: Cluster, stands: Mapping[str, Sequence[str]]) -> Rollout:
    """One profile, as it was always served: it has the first Sparks, and all else is in its way.

    `stands`: what is set up on the site, by its label.
    """
    loaded = profile.load(name)
    here = names.marked(loaded.name) in stands
    state = steps.STAYS if here else "new"
    mine = Member(loaded.name, name, tuple(downloads.nodes(loaded, cluster)), state)
    others = tuple(one for one in stands if one != names.marked(loaded.name))
    idle = () if here else tuple(node.name for node in cluster.nodes)
    return Rollout([mine], [steps.Wave(others, (loaded.name,), idle)])


def member(one: Grouped) -> Member:
    """As the plan has it."""
    group = one.group
    return Member(group.name, group.profile, group.nodes, one.state, one.seat.as_dict(), group.served)


def members(planned: FleetPlan) -> list[Member]:
    """Refused where the list does not pack."""
    if planned.fits is False:
        told = "; ".join(planned.advice)
        message = f"{planned.reason}{f'; what would help: {told}' if told else ''}"
        raise InputError.single("serve", message, rule="does-not-pack")
    return [member(one) for one in planned.grouped]


def of_list(planned: FleetPlan, runs: Mapping[str, Running], more: Mapping[str, Sequence[str]], policy: str) -> Rollout:
    """`more`: what stands on the site without a record of it."""
    made = [_looked_at(one, planned, runs, policy) for one in members(planned)]
    wanted = [steps.Wanted(one.name, one.nodes, one.state) for one in made]
    here = {name: one.nodes for name, one in runs.items()} | dict(more)
    return Rollout(made, steps.order(wanted, here), planned.findings, words(made, here))


def _looked_at(one: Member, planned: FleetPlan, runs: Mapping[str, Running], policy: str) -> Member:
    """One that stays, unless what it starts with has changed since."""
    if one.state != steps.STAYS:
        return one
    now = case.render(one.profile, planned.cluster, force=True, policy=policy, seat=one.seat).digest
    return one if now == runs[one.name].config_hash else replace(one, state=RENEWS)


def words(made: Sequence[Member], runs: Mapping[str, Sequence[str]]) -> str:
    """What is about to happen, a line for each group that is not as it should be."""
    listed = {one.name for one in made}
    gone = [
        f"{name} on {', '.join(at)} stops: it is not in the list" for name, at in runs.items() if name not in listed
    ]
    told = [f"{one.name} on {', '.join(one.nodes)} {WHAT[one.state]}" for one in made]
    return "\n".join([*gone, *told])


def only(made: Rollout, name: str) -> Rollout:
    """The part of one group: it ends, and it starts; what becomes of the others is not decided here."""
    mine = next(one for one in made.members if one.name == name)
    return Rollout([mine], [steps.Wave((name,), (name,), mine.nodes if mine.alone else ())])


def refuse(findings: Iterable[Finding], *, force: bool) -> None:
    """Error findings of any group, before anything stops."""
    found = list(findings)
    if errors(found) and not force:
        raise case.Refused(errors(found))


def keep(cluster: Cluster) -> int:
    """build/<site>/fleet.json says what the cluster says; how many groups run."""
    runs = fleet.running(cluster)
    fleet_record.write(fleet_record.path(cluster.name), runs.values())
    return len(runs)


def forget(cluster: Cluster, kept: Iterable[str]) -> None:
    """The record of a last proved start, where no group has it any more."""
    if groups.ONLY_SERVED not in set(kept):
        client.of(cluster).remove_config_map(groups.ONLY_SERVED)


def entry(listed: list[Any], group: str, chosen: str) -> list[Any]:
    """The list with another profile for one group, as `playbooks/switch.yml -e group=... -e profile=...` asks."""
    known = [called(item) for item in listed]
    if group not in known:
        message = f"serve: has no group '{group}'; there are: {', '.join(known) or 'none'}"
        raise InputError.single("-e group", message, rule="no-such-group")
    place = known.index(group)
    return [*listed[:place], {**whole(listed[place]), "name": group, "profile": chosen}, *listed[place + 1 :]]
