"""Which groups a site has: those of its list, those whose pods are there, those of which only a record is left.

The cluster tells what is there, the inventory what should be; that the two differ is nobody's error here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.case import Inventory
from sparkloom.inputs import group_name, serving
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.serving import Serving
from sparkloom.launch.groups import ONLY_KEY
from sparkloom.render.manifests.names import ENGINES, PROFILE, RANK, marked
from sparkloom.site.client import Client
from sparkloom.site.groups import observed, records
from sparkloom.site.groups.records import Record


@dataclass(frozen=True, slots=True)
class Member:
    """One group. `record`: what was applied; `served`: its last proved start; both empty where there is none."""

    name: str
    profile: str  # as the list says, else as it was applied
    alias: str  # what clients ask for, where the list gives one
    listed: bool  # where there is no list, the one that is there is as good as listed
    fraction: float | None
    pods: tuple[Any, ...]
    record: Record
    served: Record
    kept_in: str = "served"  # the ConfigMap that has `served`
    on_demand: bool = False  # as the list says
    wanted: int | None = None  # how many pods it is to have, where it is on demand and set up

    @property
    def asleep(self) -> bool:
        """No rank of it is wanted now: the next request wakes it."""
        return self.on_demand and self.wanted == 0

    @property
    def label(self) -> str:
        return group_name.label(self.name)

    @property
    def nodes(self) -> tuple[str, ...]:
        """As it was applied, rank 0 first."""
        ranks = sorted(self.record.get("ranks", ()), key=lambda rank: int(rank["rank"]))
        return tuple(str(rank["node"]) for rank in ranks)

    @property
    def carries(self) -> str:
        """The profile that runs, which may be another than the list's: after a switch, or in a matrix."""
        return str(self.record.get("profile") or self.profile) if self.pods or self.asleep else self.profile

    def goes_by(self, word: str) -> bool:
        return word in (self.name, self.alias, self.profile, self.label)


@dataclass(frozen=True, slots=True)
class Roster:
    """`listed`: the inventory has a list; `problem`: why it cannot be read."""

    members: tuple[Member, ...]
    listed: bool
    problem: str = ""

    @property
    def single(self) -> Member | None:
        """The only group of a site with one, as ever; a record without pods makes no second one."""
        counted = [one for one in self.members if one.pods or one.listed]
        return counted[0] if len(counted) == 1 and not self.problem else None

    @property
    def running(self) -> list[Member]:
        return [one for one in self.members if one.pods]

    def one(self, word: str) -> Member:
        """By its name, by what clients ask for, or by its profile where no other has it."""
        named = [one for one in self.members if one.name == word]
        meant = named or [one for one in self.members if one.goes_by(word)]
        if len(meant) == 1:
            return meant[0]
        known = [one.name for one in self.members]
        if meant:
            found = f"{word} is {len(meant)} groups ({', '.join(one.name for one in meant)}); write one's name"
        elif known:
            found = f"{word}: the site has no such group{did_you_mean(word, known)}"
        else:
            found = f"{word}: the site has no group, and nothing runs there"
        raise InputError.single("group", found, rule="no-such-group")


def read(reached: Client, cluster: Cluster, inventory: Inventory = None) -> Roster:
    """The list's groups in its order, then the others by name."""
    listing, problem = listed(cluster, inventory)
    pods, told = reached.pods(ENGINES), reached.records()
    if listing is None and len({_label(pod) for pod in pods}) < 2 and not problem:
        return Roster(tuple(_as_ever(reached, pods, told)), listed=False)
    entries = {} if listing is None else {entry.called: entry for entry in listing.entries}
    wanted = observed.wanted(reached, listing) if listing else {}
    applied = {str(record.get("group") or record["profile"]): record for record in told}
    names = list(dict.fromkeys([*entries, *sorted(applied)]))
    spelt = {spelling: name for name in names for spelling in (name, group_name.label(name))}
    there: dict[str, list[Any]] = {}
    for pod in pods:
        there.setdefault(spelt.get(_label(pod), _label(pod)), []).append(pod)
    members = []
    for name in [*names, *sorted(set(there) - set(names))]:
        entry, record, mine = entries.get(name), applied.get(name, {}), tuple(there.get(name, ()))
        profile = entry.profile if entry else str(record.get("profile") or name)
        alias = (entry.alias if entry else "") or ""
        proved = _proved(reached, name, str(record.get("profile") or profile), mine)
        share = entry.fraction if entry else record.get("fraction")
        demanded = bool(entry and entry.on_demand), wanted.get(marked(name))
        members.append(Member(name, profile, alias, entry is not None, share, mine, record, *proved, *demanded))
    return Roster(tuple(members), listing is not None, problem)


def listed(cluster: Cluster, inventory: Inventory) -> tuple[Serving | None, str]:
    """The inventory's list, and why it cannot be read. None of a site with one profile, as ever."""
    try:
        if isinstance(inventory, Cluster):
            return None, ""
        if isinstance(inventory, Mapping):
            return (serving.from_vars(inventory, cluster), "") if "serve" in inventory else (None, "")
        if inventory is None or not serving.has_list(inventory):
            return None, ""
        return serving.load(inventory, cluster), ""
    except InputError as error:
        return None, str(error.problems[0])


def _label(pod: Any) -> str:
    return str(pod.metadata.labels.get(PROFILE))


def _as_ever(reached: Client, pods: Sequence[Any], told: Sequence[Record]) -> list[Member]:
    """Of a site with one profile: the one whose pods are there, else the one that was proved to serve."""
    proved = records.read(reached)
    here = _label(pods[0]) if pods else ""
    names = {here} if here else {str(proved.get("profile") or "")}
    mine = [one for one in told if names & _names(one)]
    record = mine[0] if len(mine) == 1 else {}
    name = str(record.get("group") or record.get("profile") or here or proved.get("profile") or "")
    profile = str(record.get("profile") or name)
    share = record.get("fraction")
    return [Member(name, profile, "", True, share, tuple(pods), record, proved)] if name else []


def _names(record: Record) -> set[str]:
    """How pods of what was applied may be labelled."""
    name = str(record.get("group") or record["profile"])
    return {name, group_name.label(name)}


def _proved(reached: Client, name: str, profile: str, pods: Sequence[Any]) -> tuple[Record, str]:
    """Its own record of a proved start and where that is: under its own name, or under that of a site with one
    profile if it has that.
    """
    key, mine = _engine_key(pods), f"{group_name.label(name)}-served"
    own = {} if key == ONLY_KEY else records.read(reached, mine)
    if own or (key and key != ONLY_KEY):
        return own, mine
    only = records.read(reached)
    about = str(only.get("profile") or (only.get("failed") or {}).get("profile") or "")
    return (only, records.NAME) if key == ONLY_KEY or about in (name, profile) else ({}, mine)


def _engine_key(pods: Sequence[Any]) -> str:
    """The Secret that its rank 0 has the engine's own key from."""
    head = next((pod for pod in pods if pod.metadata.labels.get(RANK) == "0"), None)
    volumes = (head.spec.volumes or []) if head else []
    return next((v.secret.secret_name for v in volumes if v.name == "key" and v.secret), "")
