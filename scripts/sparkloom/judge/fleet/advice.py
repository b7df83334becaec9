"""What would make a refused list fit: each thing said here was tried with the same search, and fits.

The least intrusive first: a fraction, a pinned Spark, functions of the rails, another count of Sparks, sharing, taking
turns, one profile less. Groups that take turns have one place, so what is changed of one is changed of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs import addressing
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.serving import LEAST_SHARE, Serving
from sparkloom.judge.fleet import needs, packing
from sparkloom.judge.fleet.needs import Need
from sparkloom.judge.fleet.problem import Problem, Undecided, Want, by_turn

MOST = 5  # things to choose from, on one screen
MOST_FUNCTIONS = 16  # of a port, as fabric.vfs_per_rail
MOST_NODES = 8
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
class Trials:
    """The list with something otherwise: whether it would pack then."""

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

    @cached_property
    def listed(self) -> dict[str, Want]:
        """What is asked now, of those that this inventory can have."""
        launched = [need for need in self.wanted if need.launch is not None]
        return {need.name: needs.want(need, self.sparks, need.entry.fraction) for need in launched}

    def fits(self, changed: Mapping[str, Want | None], functions: tuple[int, ...] | None = None) -> bool:
        """The list with some of its groups otherwise, or (None) without them."""
        every = {**self.listed, **changed}
        if any(need.name not in every for need in self.wanted):
            return False
        asked = tuple(want for need in self.wanted if (want := every[need.name]) is not None)
        given = addressing.functions_of_pods(self.cluster) if functions is None else functions
        try:
            return packing.fits(Problem(needs.spots(self.sparks), asked, given))
        except Undecided:
            return False

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


def of(serving: Serving, wanted: Sequence[Need], cluster: Cluster, sparks: Mapping[str, Platform]) -> list[str]:
    """Sentences, each a change that is enough by itself."""
    trials = Trials(serving, list(wanted), cluster, sparks)
    ways = (_fractions, _pins, _functions, _counts, _shared, _in_turn, _fewer)
    return list(islice((text for way in ways for text in way(trials)), MOST))


def _fractions(trials: Trials) -> Iterator[str]:
    """One fraction otherwise, as near to what is asked for as may be; or all of them at their least."""
    shared = [unit for unit in trials.units if unit.fraction is not None and unit.placeable]
    least = [trials.least(unit) for unit in shared]
    found = False
    for unit, enough in zip(shared, least, strict=True):
        if enough is None:
            continue
        now = round((unit.fraction or 0) * HUNDREDTHS)
        nearest = _nearest(trials, unit, enough, now)
        if nearest is not None:
            found = True
            yield f"{unit.name}: fraction {unit.fraction:g} -> {nearest / HUNDREDTHS:g}"
    if found or len(shared) < 2 or any(number is None for number in least):
        return
    smaller = [(unit, (number or 0) / HUNDREDTHS) for unit, number in zip(shared, least, strict=True)]
    if trials.fits({name: want for unit, share in smaller for name, want in trials.wants(unit, share).items()}):
        told = ", ".join(
            f"{need.name} {unit.fraction:g} -> {share:g}" for unit, share in smaller for need in unit.needs
        )
        yield f"smaller fractions: {told}"


def _nearest(trials: Trials, unit: Unit, enough: int, now: int) -> int | None:
    """The largest that packs, below what is asked for; or the least that starts, above it."""

    def packs(hundredths: int) -> bool:
        return trials.fits(trials.wants(unit, hundredths / HUNDREDTHS))

    if not packs(enough):
        return None
    if enough >= now:
        return enough if enough != now else None
    low, high = enough, now - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if packs(middle) else (low, middle - 1)
    return low


def _pins(trials: Trials) -> Iterator[str]:
    for unit in trials.units:
        if unit.pinned and unit.placeable and trials.fits(trials.wants(unit, unit.fraction, fixed=())):
            yield f"{unit.name}: nodes: {unit.count} in place of the names {', '.join(unit.pinned)}"


def _functions(trials: Trials) -> Iterator[str]:
    """Groups of several Sparks that share one need a function of each rail each."""
    fabric = trials.cluster.fabric
    for count in range(fabric.vfs_per_rail + 1, MOST_FUNCTIONS + 1):
        more = trials.cluster.model_copy(update={"fabric": fabric.model_copy(update={"vfs_per_rail": count})})
        given = addressing.functions_of_pods(more)
        if len(given) > len(addressing.functions_of_pods(trials.cluster)) and trials.fits({}, given):
            yield f"fabric.yml: vfs_per_rail: {count}, a function of each rail for every group that shares Sparks"
            return


def _counts(trials: Trials) -> Iterator[str]:
    for unit in trials.units:
        if unit.pinned:
            continue
        for count in range(1, min(MOST_NODES, len(trials.cluster.nodes)) + 1):
            other = {need.name: _split(trials, need, count) for need in unit.needs} if count != unit.count else {}
            if other and None not in other.values() and trials.fits(other):
                yield f"{unit.name}: nodes: {count} instead of {unit.count}"
                break


def _split(trials: Trials, need: Need, count: int) -> Want | None:
    """The same group on another number of Sparks, where it can be cut so and fits them."""
    entry = need.entry.model_copy(update={"nodes": count})
    try:
        other = needs.one(trials.serving, need.number, trials.cluster, entry)
    except InputError:
        return None
    return None if other.launch is None else needs.want(other, trials.sparks, entry.fraction)


def _shared(trials: Trials) -> Iterator[str]:
    """Groups that have Sparks of their own, on shares of them: as few as will do."""
    own = [(unit, trials.least(unit)) for unit in trials.units if unit.fraction is None]
    able = [(unit, number / HUNDREDTHS) for unit, number in own if number is not None]
    for size in (1, 2, 3):
        for chosen in combinations(able, size):
            changed = {name: want for unit, share in chosen for name, want in trials.wants(unit, share).items()}
            if trials.fits(changed):
                told = " and ".join(f"{need.name} fraction: {share:g}" for unit, share in chosen for need in unit.needs)
                yield f"a shared Spark: {told} (the least that starts; more is more cache)"
                return


def _in_turn(trials: Trials) -> Iterator[str]:
    """Two that never need to answer at once, in one place: the first two that will do."""
    for one, other in combinations(trials.units, 2):
        if (one.count, one.fraction) != (other.count, other.fraction) or not (one.placeable and other.placeable):
            continue
        both = Unit((*one.needs, *other.needs))
        turn = next((need.turn for need in both.needs if need.turn), both.needs[0].name)
        if trials.fits(trials.wants(both, both.fraction, turn=turn)):
            yield f"one of them awake at a time: turns: {turn} and idle_minutes: for {both.name}"
            return


def _fewer(trials: Trials) -> Iterator[str]:
    spare = [need.name for need in trials.wanted if trials.fits({need.name: None})]
    if spare:
        yield f"one profile less: without {' or '.join(spare)}"
        return
    kept: list[Need] = []
    for need in trials.wanted:  # the list's order is whose turn it is
        others = [other.name for other in trials.wanted if other not in (*kept, need)]
        if trials.fits(dict.fromkeys(others)):
            kept.append(need)
    if kept:
        yield f"fewer profiles: {', '.join(need.name for need in kept)} fit together"
