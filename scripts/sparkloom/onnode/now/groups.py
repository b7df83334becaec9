"""One group as it is: what is said of it by the site's list, by its records and by its pods; and its state.

Whoever tells a group (status, page, doctor, logs, a benchmark) takes it from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparkloom.onnode.now import pods
from sparkloom.onnode.now.labels import ONLY_KEY, ONLY_SERVED, PROFILE, RANK, STOPPED

Facts = Mapping[str, Any]  # what the controller knows of the site: site/facts.py makes it
Shown = dict[str, Any]


@dataclass(frozen=True)
class Applied:
    """What one ConfigMap of a group says: what was applied, or the last start that was proved."""

    map: str  # its name; of a record without its ending
    record: Shown
    served: Shown


@dataclass(frozen=True)
class Look:
    """One look at the cluster. `reports` of supervisors, `gauges`, `rates` by the pod's name; `held` by the router."""

    at: float = 0.0
    pods: Sequence[Any] = ()
    sets: Sequence[Any] = ()  # the engines' StatefulSets
    stops: Mapping[str, str] = field(default_factory=dict)  # by whom and when each group was, by its label
    applied: Sequence[Applied] = ()
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: Mapping[str, str] = field(default_factory=dict)
    reports: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    gauges: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by the node's name: `gather.OF_HOST`, disks
    rates: Mapping[str, float] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)

    @property
    def records(self) -> list[Shown]:
        return [one.record for one in self.applied if one.record]


@dataclass(frozen=True)
class Observed:
    """`plan`: by the site's list and its plan; empty for a group outside the list. `record`: what was applied;
    `served`: its last proved start, as the ConfigMap `kept_in` has it; both empty where there is none.
    """

    name: str
    label: str  # what its objects begin with
    plan: Mapping[str, Any]
    listed: bool  # where a site has no list, what is there is as good as listed
    record: Shown
    served: Shown
    kept_in: str
    pods: Sequence[Any]
    wanted: int | None = None  # how many pods it is to have, where that is known
    stopped: str = ""  # by whom and when, of one that is to have none until it is started
    sets: Sequence[Any] = ()  # its StatefulSets

    @property
    def on_demand(self) -> bool:
        return bool(self.plan.get("idle_minutes"))

    @property
    def asleep(self) -> bool:
        """No rank of it is wanted now: the next request wakes it."""
        return self.on_demand and self.wanted == 0 and not self.stopped

    @property
    def profile(self) -> str:
        """The one that runs, which may be another than the list's: after a switch, or in a matrix."""
        applied, listed = self.record.get("profile"), self.plan.get("profile")
        return str((applied or listed if self.pods or self.asleep or self.stopped else listed or applied) or self.name)

    @property
    def names(self) -> list[str]:
        """What clients ask for."""
        return list(self.plan.get("names") or filter(None, [self.served.get("model") or self.record.get("model")]))

    @property
    def alias(self) -> str:
        return self.names[0] if self.plan.get("names") else ""

    @property
    def nodes(self) -> list[str]:
        """As it was applied, else as it is planned; rank 0 first."""
        ranks = sorted(self.record.get("ranks", ()), key=lambda rank: int(rank["rank"]))
        return [str(rank["node"]) for rank in ranks] or list(self.plan.get("nodes") or ())

    def goes_by(self, word: str) -> bool:
        return word in (self.name, self.alias, self.plan.get("profile"), self.profile, self.label)


def observe(facts: Facts, look: Look) -> list[Observed]:
    """Those of the list in its order, then what else is there."""
    told = {str(group["name"]): group for group in facts.get("groups", ())}
    records = {_of(one.record): one for one in look.applied if one.record}
    served = {one.map: one.served for one in look.applied if one.served}
    names = list(dict.fromkeys([*told, *sorted(records)]))
    labels = {name: told[name]["label"] for name in told} | {name: one.map for name, one in records.items()}
    spelt = {word: name for name in names for word in (labels[name], name)}
    there, sets = dict[str, list[Any]](), dict[str, list[Any]]()
    for pod in look.pods:
        there.setdefault(spelt.get(label(pod), label(pod)), []).append(pod)
    for one in look.sets:
        sets.setdefault(spelt.get(label(one), label(one)), []).append(one)
    found = []
    for name in [*names, *sorted(set(there) - set(names))]:
        record, mine = records[name].record if name in records else {}, there.get(name, [])
        called = labels.get(name, name)
        about = (name, record.get("profile") or told.get(name, {}).get("profile"))
        proved = _proved(about, called, mine, served)
        plan, its = told.get(name, {}), sets.get(name, ())
        wanted = sum(map(replicas, its)) if its else None
        found.append(
            Observed(name, called, plan, name in told, record, *proved, mine, wanted, stopped(its, look.stops), its)
        )
    return found if facts.get("listed", True) else list(_of_one_profile(found))


def replicas(one: Any) -> int:
    """How many pods a StatefulSet is to have."""
    return 1 if one.spec.replicas is None else int(one.spec.replicas)


def stopped(sets: Sequence[Any], stops: Mapping[str, str]) -> str:
    """By whom and when a group was stopped; empty while one of its sets is to have a pod.

    What a set itself says of it is believed until it is said in `stops`, which whoever stops or starts it does.
    """
    notes = (stops.get(label(one), (one.metadata.annotations or {}).get(STOPPED)) for one in sets)
    return "" if any(map(replicas, sets)) else next((str(note) for note in notes if note), "")


def _of_one_profile(found: Sequence[Observed]) -> Iterator[Observed]:
    """Of a site without a list: what runs there, else what was proved to serve, else the inventory's profile."""
    runs = [one for one in found if one.pods]
    if len(runs) > 1:
        yield from (replace(one, listed=False) for one in found if one.pods or one.record)
    elif only := next(iter([*runs, *(one for one in found if one.served), *(one for one in found if one.plan)]), None):
        yield replace(only, listed=True, wanted=0 if only.stopped else len(only.record.get("ranks", ())))


def _of(record: Mapping[str, Any]) -> str:
    return str(record.get("group") or record.get("profile") or "")


def label(one: Any) -> str:
    """The group that a pod or a set belongs to, as it is marked."""
    return str(one.metadata.labels.get(PROFILE))


def _proved(
    about: tuple[str, str | None], called: str, mine: Sequence[Any], served: Mapping[str, Shown]
) -> tuple[Shown, str]:
    """Its own record of a proved start and where that is: under its own name, or under that of a site with one
    profile if it has that.
    """
    key, name = _engine_key(mine), f"{called}-served"
    own, only = served.get(name, {}), served.get(ONLY_SERVED, {})
    said = _of(only) or str((only.get("failed") or {}).get("profile") or "")
    its_own = own or (key and key != ONLY_KEY)
    if only and (key == ONLY_KEY or (said in about and not its_own)):
        return only, ONLY_SERVED
    return own, name


def _engine_key(mine: Sequence[Any]) -> str:
    """The Secret that its rank 0 has the engine's own key from."""
    head = next((pod for pod in mine if pod.metadata.labels.get(RANK) == "0"), None)
    volumes = (head.spec.volumes or []) if head else []
    return next((str(v.secret.secret_name) for v in volumes if v.name == "key" and v.secret), "")


def state(one: Observed, ranks: Sequence[Shown]) -> str:
    """The state of a group, for all that tell one: serves, starts, failed (it does not mend itself), incomplete (lacks
    a rank), stopped (by a person), down, gone (no pods, and not listed); of one on demand also asleep and wakes.

    `ranks`: as `ranks.row` tells them.
    """
    if one.stopped or one.asleep:
        return "stopped" if one.stopped else "asleep"
    if not any(rank["pod"] for rank in ranks):
        return "wakes" if one.on_demand and one.wanted else "down" if one.listed else "gone"
    if any(not rank["ready"] and rank["state"] in (*pods.HOPELESS, *pods.STUCK) for rank in ranks):
        return "failed"
    if one.on_demand and not any(rank["ready"] for rank in ranks):
        return "wakes"
    if any(not rank["pod"] for rank in ranks):
        return "incomplete"
    return "serves" if all(rank["ready"] for rank in ranks) else "starts"


# In a word, for every screen; `status` says more of some.
WORDS = {
    "serves": "serves", "starts": "starts", "wakes": "wakes", "failed": "failed", "incomplete": "lacks a rank",
    "asleep": "asleep", "stopped": "stopped", "down": "does not run", "gone": "left over",
}  # fmt: skip


def resting(groups: Sequence[Shown]) -> str:
    """How many have no pods and should have none, behind how many serve; empty where there are none."""
    counted = ((sum(one["state"] == state for one in groups), state) for state in ("asleep", "stopped"))
    return "".join(f", {count} {state}" for count, state in counted if count)


def healthy(one: Shown) -> bool:
    """Whether a group is as it should be: it serves, or a request is enough that it does."""
    return bool(one["serving"] or one["state"] == "asleep")
