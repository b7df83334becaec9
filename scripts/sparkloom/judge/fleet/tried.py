"""A list with something otherwise: whether it would pack then. What one group of a turn has, all of that turn have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.serving import LEAST_SHARE, Serving
from sparkloom.judge.fleet import needs, packing
from sparkloom.judge.fleet.needs import Need
from sparkloom.judge.fleet.problem import Problem, Undecided, Want, by_turn
from sparkloom.launch import groups

HUNDREDTHS = 100


@dataclass(frozen=True, slots=True)
class Unit:
    """One group, or all of one turn."""

    needs: tuple[Need, ...]

    @property
    def name(self) -> str:
        return ", ".join(need.name for need in self.needs)

    @property
    def count(self) -> int:
        return self.needs[0].count

    @property
    def fraction(self) -> float | None:
        return self.needs[0].entry.fraction

    @property
    def placeable(self) -> bool:
        return all(need.launch is not None for need in self.needs)

    @property
    def pinned(self) -> tuple[str, ...]:
        return next((need.entry.pinned for need in self.needs if need.entry.pinned), ())


@dataclass(frozen=True)
class Tried:
    serving: Serving
    wanted: list[Need]
    cluster: Cluster
    sparks: Mapping[str, Platform]

    @cached_property
    def units(self) -> list[Unit]:
        return [Unit(needs) for needs in by_turn(self.wanted)]

    def wants(self, unit: Unit, fraction: float | None = None, **other: Any) -> dict[str, Want]:
        """Of each of them, with that share and what else is said."""
        return {need.name: replace(needs.want(need, self.sparks, fraction), **other) for need in unit.needs}

    def fits(self, changed: Mapping[str, Want | None], functions: tuple[int, ...] | None = None) -> bool:
        """The list with some of its groups otherwise, or (None) without them."""
        if any(need.launch is None for need in self.wanted if need.name not in changed):
            return False
        listed = {need.name: self._as_listed(need) for need in self.wanted if need.name not in changed}
        every = {**listed, **changed}
        asked = [want for need in self.wanted if (want := every[need.name]) is not None]
        given = groups.functions(self.cluster) if functions is None else functions
        try:
            return packing.fits(Problem(needs.spots(self.sparks), tuple(asked), given))
        except Undecided:
            return False

    def _as_listed(self, need: Need) -> Want:
        return needs.want(need, self.sparks, need.entry.fraction)

    def least(self, unit: Unit) -> int | None:
        """The smallest share, in hundredths, in which it starts on enough Sparks; None where none is enough."""
        if not unit.placeable:
            return None
        spark = next(iter(self.sparks.values()))
        most = int(needs.room_mib(spark) / needs.MIB / spark.usable_gib * HUNDREDTHS)
        low, high = int(LEAST_SHARE * HUNDREDTHS), most + 1
        while low < high:
            middle = (low + high) // 2
            wants = self.wants(unit, middle / HUNDREDTHS).values()
            able = len(frozenset.intersection(*(want.able for want in wants))) >= unit.count
            low, high = (low, middle) if able else (middle + 1, high)
        return low if low <= most else None
