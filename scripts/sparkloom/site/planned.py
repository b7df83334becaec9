"""What a site's list would have now, beside what runs: each group's Sparks, its model's name, the hash of its pods."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.case import Inventory
from sparkloom.inputs.cluster import Cluster
from sparkloom.render import manifests
from sparkloom.site.groups import observed
from sparkloom.site.groups.records import Record
from sparkloom.site.roster import Member, Roster

Digest = Callable[[Record], str | None]


class Planned:
    """Planned once, and only of a site that has a list."""

    def __init__(self, cluster: Cluster, inventory: Inventory, there: Roster) -> None:
        self._cluster, self._inventory, self._listed = cluster, inventory, there.listed
        self._refused = ""

    @cached_property
    def _plan(self) -> Any:
        """None where the list does not pack, or cannot be read."""
        if not self._listed or isinstance(self._inventory, Cluster):
            return None
        try:
            return case.fleet(self._inventory, runs=observed.running(self._cluster))
        except InputError as error:
            self._refused = str(error.problems[0])
            return None

    @property
    def problem(self) -> str:
        """Why the list cannot be had on this site."""
        if not self._plan or self._plan.fits is not False:
            return self._refused and f"the list cannot be had: {self._refused}"
        return f"the list does not pack: {self._plan.reason}; sparkloom fleet plan says what would help"

    @property
    def cluster(self) -> Cluster:
        """The site as the plan saw it."""
        return self._plan.cluster if self._plan else self._cluster

    def one(self, member: Member) -> Any:
        """The group in the plan; None where there is none."""
        grouped = self._plan.grouped if self._plan else ()
        return next((one for one in grouped if one.group.name == member.name), None)

    def alias(self, member: Member) -> str:
        one = self.one(member)
        return member.alias or (one.group.alias if one else "")

    def nodes(self, member: Member) -> tuple[str, ...]:
        one = self.one(member)
        return one.group.nodes if one else ()

    def digest(self, member: Member) -> Digest:
        """What its pods would carry, rendered now: as a group of the list, else as the profile alone."""

        if not self._listed:
            return alone(self._cluster)

        def of(record: Record) -> str | None:
            policy = record.get("policy", case.POLICY)
            if not (one := self.one(member)):
                return None
            launch, site = one.launched(self.cluster)
            return manifests.build(launch, site, policy)[1]

        return of


def alone(cluster: Cluster) -> Digest:
    """As a site with one profile has it."""

    def of(record: Record) -> str:
        policy = record.get("policy", case.POLICY)
        return case.render(record["profile"], cluster, force=True, policy=policy).digest

    return of
