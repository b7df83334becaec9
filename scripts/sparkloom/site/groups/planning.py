"""From what a site runs to what its list says: each group with its seat, and in which waves they end and start.

What playbooks/serve.yml does, as plain data. A site with one profile is one group without a seat, whatever else stands
there ends when somebody said so.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding, errors
from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.serving import called, whole
from sparkloom.judge.fleet import FleetPlan, steps
from sparkloom.launch import downloads, fleet_record
from sparkloom.launch.groups import Placed, Running
from sparkloom.render.manifests import names
from sparkloom.site import client
from sparkloom.site.groups import observed

RENEWS = "renews"  # stands where it should, and what it is started with has changed
LACKS = "lacks"  # on demand, and a rank of it is set up no more
UNPROVED = "unproved"  # sleeps, and nobody has seen it start so
WAKES = "wakes"  # sleeps, and is on demand no more
WHAT = {
    steps.STAYS: "stays as it is",
    "new": "starts",
    "moves": "moves there",
    "changes": "is replaced",
    RENEWS: "starts anew, as its profile or the inventory has changed",
    LACKS: "starts anew, as one of its ranks is gone",
    UNPROVED: "starts, as this start of it was not proved yet",
    WAKES: "starts again, as it is on demand no more",
}


@dataclass(frozen=True, slots=True)
class Rollout:
    members: Sequence[Placed]
    waves: Sequence[steps.Wave]
    findings: Sequence[Finding] = ()
    said: str = ""

    @property
    def holds(self) -> bool:
        """Whether a group that is on demand starts, or is put to sleep: nobody else may do so meanwhile."""
        starts = any(one.on_demand and one.state != steps.STAYS for one in self.members)
        return starts or any(wave.sleep for wave in self.waves)

    def as_dict(self) -> dict[str, Any]:
        """Groups by name in the waves are whole groups here: Ansible loops over them."""
        told = {one.name: as_dict(one) for one in self.members}
        waves = [
            {
                "stop": [names.marked(name) for name in wave.stop],
                "start": [told[name] for name in wave.start],
                "idle": list(wave.idle),
                "sleep": [names.marked(name) for name in wave.sleep],
            }
            for wave in self.waves
        ]
        return {"groups": list(told.values()), "waves": waves, "holds": self.holds}


def as_dict(one: Placed) -> dict[str, Any]:
    """A group as the roles take it; `seat` is empty for the one of a site with one profile."""
    return {
        "name": one.name,
        "label": names.marked(one.name),
        "profile": one.profile,
        "nodes": list(one.nodes),
        "state": one.state,
        "alone": one.fraction is None,
        "seat": asdict(one) if one.where else {},
        "served": one.served,
        "on_demand": one.on_demand,
        "stopped": one.stopped,
    }


def alone(
    name: str, cluster: Cluster, stands: Mapping[str, Sequence[str]], stopped: Mapping[str, str] | None = None
) -> Rollout:
    """One profile, as it was always served: it has the first Sparks, and all else is in its way.

    `stands`: what is set up on the site, by its label; `stopped`: of what was, by whom and when.
    """
    loaded = profile.load(name)
    here, by = names.marked(loaded.name) in stands, (stopped or {}).get(names.marked(loaded.name), "")
    state = steps.STAYS if here else "new"
    mine = Placed(loaded.name, name, tuple(downloads.nodes(loaded, cluster)), only=True, state=state, stopped=by)
    others = tuple(one for one in stands if one != names.marked(loaded.name))
    idle = () if here else tuple(node.name for node in cluster.nodes)
    return Rollout([mine], [steps.Wave(others, (loaded.name,), idle)], said=_stays_stopped(mine) if by else "")


def members(planned: FleetPlan) -> list[Placed]:
    """Refused where the list does not pack."""
    if planned.fits is False:
        told = "; ".join(planned.advice)
        message = f"{planned.reason}{f'; what would help: {told}' if told else ''}"
        raise InputError.single("serve", message, rule="does-not-pack")
    return [one.group for one in planned.grouped]


def of_list(planned: FleetPlan, runs: Mapping[str, Running], more: Mapping[str, Sequence[str]], policy: str) -> Rollout:
    """`more`: what stands on the site without a record of it."""
    made = [_looked_at(one, planned, runs, policy) for one in members(planned)]
    here = {name: one.nodes for name, one in runs.items()} | dict(more)
    waves = steps.order(made, here)
    asleep = {name for name, one in runs.items() if not one.awake}
    warned = (one.message for one in planned.findings if one.rule == "fleet-nobody-wakes")
    said = [*_words(made, here, waves, asleep), *warned]
    return Rollout(made, waves, planned.findings, "\n".join(said))


def _looked_at(one: Placed, planned: FleetPlan, runs: Mapping[str, Running], policy: str) -> Placed:
    """One that stays, unless what it starts with has changed since, or it does not sleep as it should."""
    if one.name in runs and (by := runs[one.name].stopped):
        return replace(one, stopped=by)  # it is only set up, whatever has changed
    if one.state != steps.STAYS:
        return one
    now, ran = case.render(one.profile, planned.cluster, force=True, policy=policy, seat=one), runs[one.name]
    if now.digest != ran.config_hash:
        return replace(one, state=RENEWS)
    if not ran.awake and not one.on_demand:
        return replace(one, state=WAKES)
    if one.on_demand and not ran.whole:
        return replace(one, state=LACKS)
    return one if ran.awake or ran.proved == now.digest else replace(one, state=UNPROVED)


def _words(
    made: Sequence[Placed], runs: Mapping[str, Sequence[str]], waves: Sequence[steps.Wave], asleep: Container[str]
) -> Iterator[str]:
    """What is about to happen, a line for each group that is not as it should be."""
    listed = {one.name for one in made}
    for name, at in runs.items():
        if name not in listed:
            yield f"{name} on {', '.join(at)} stops: it is not in the list"
    for one in made:
        told = f"{one.name} on {', '.join(one.nodes)} {WHAT[one.state]}{_sleep(one, made, waves, asleep)}"
        yield _stays_stopped(one) if one.stopped else told


def _stays_stopped(one: Placed) -> str:
    return f"{one.name} on {', '.join(one.nodes)} stays stopped (by {one.stopped}) until `sparkloom start {one.name}`"


def _sleep(one: Placed, made: Sequence[Placed], waves: Sequence[steps.Wave], asleep: Container[str]) -> str:
    """Of one that sleeps, or that another of its turn needs the place of."""
    stays = one.state == steps.STAYS
    if stays and one.name in asleep:
        return " (asleep)"
    wave = next((wave for wave in reversed(waves) if one.name in wave.sleep), None)
    if wave is None:
        return ""
    turns = {each.name: each.turns for each in made if each.state != steps.STAYS}
    other = next(name for name in wave.start if turns.get(name) == one.turns)
    put = "is put to sleep, as" if stays else "is put to sleep once it was proved, as"
    return f", and {put} {other} starts in its place; a request wakes it"


def rollout(listed: Mapping[str, Any] | None, named: str, cluster: Cluster, policy: str) -> Rollout:
    """By what the cluster says now: of the site's list, else of its one profile."""
    if listed is None:
        return alone(named, cluster, observed.unrecorded(cluster, {}), observed.stopped_by_label(client.of(cluster)))
    runs = observed.running(cluster)
    return of_list(case.fleet(listed, runs=runs), runs, observed.unrecorded(cluster, runs), policy)


def in_the_way(planned: Rollout, named: str) -> str:
    """What another served profile makes of this one; empty where none is there.

    A list says all that is to serve; one profile says nothing of what serves beside it.
    """
    if not (stops := planned.waves[0].stop):
        return ""
    cure = f"run playbooks/switch.yml -e profile={named}, or this again with -e model_serving_replace=true"
    return f"{', '.join(stops)} is served here and holds the GPUs and the rails. To serve {named} instead, {cure}"


def only(made: Rollout, name: str) -> Rollout:
    """The part of one group: it ends, and it starts; what becomes of the others is not decided here."""
    mine = next(one for one in made.members if one.name == name)
    mates = tuple(one.name for one in made.members if mine.turns and one.turns == mine.turns and one is not mine)
    return Rollout([mine], [steps.Wave((name,), (name,), mine.nodes if mine.fraction is None else (), mates)])


def refuse(findings: Iterable[Finding], *, force: bool) -> None:
    """Error findings of any group, before anything stops."""
    found = list(findings)
    if errors(found) and not force:
        raise case.Refused(errors(found))


def keep(cluster: Cluster) -> list[str]:
    """build/<site>/fleet.json says what the cluster says; which of these groups sleep."""
    runs = observed.running(cluster)
    fleet_record.write(fleet_record.path(cluster.name), runs.values())
    return [name for name, one in runs.items() if not one.awake and not one.stopped]


def entry(listed: list[Any], group: str, chosen: str) -> list[Any]:
    """The list with another profile for one group, as `playbooks/switch.yml -e group=... -e profile=...` asks."""
    known = [called(item) for item in listed]
    if group not in known:
        message = f"serve: has no group '{group}'; there are: {', '.join(known) or 'none'}"
        raise InputError.single("-e group", message, rule="no-such-group")
    place = known.index(group)
    return [*listed[:place], {**whole(listed[place]), "name": group, "profile": chosen}, *listed[place + 1 :]]
