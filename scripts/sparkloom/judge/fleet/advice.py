"""What would make a refused list fit: each thing said here was tried with the same search, and fits.

The least intrusive first: a fraction, a pinned Spark, functions of the rails, another count of Sparks, sharing, taking
turns, one profile less. Groups that take turns have one place, so what is changed of one is changed of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.serving import Serving
from sparkloom.judge.fleet import needs
from sparkloom.judge.fleet.needs import Need
from sparkloom.judge.fleet.problem import Want
from sparkloom.judge.fleet.tried import HUNDREDTHS, Tried, Unit
from sparkloom.launch import groups

MOST = 5  # things to choose from, on one screen
MOST_FUNCTIONS = 16  # of a port, as fabric.vfs_per_rail
MOST_NODES = 8


def of(serving: Serving, wanted: Sequence[Need], cluster: Cluster, sparks: Mapping[str, Platform]) -> list[str]:
    """Sentences, each a change that is enough by itself."""
    tried = Tried(serving, list(wanted), cluster, sparks)
    ways = (_fractions, _pins, _functions, _counts, _shared, _in_turn, _fewer)
    return list(islice((text for way in ways for text in way(tried)), MOST))


def _fractions(tried: Tried) -> Iterator[str]:
    """One fraction otherwise, as near to what is asked for as may be; or all of them at their least."""
    shared = [unit for unit in tried.units if unit.fraction is not None and unit.placeable]
    least = [tried.least(unit) for unit in shared]
    found = False
    for unit, enough in zip(shared, least, strict=True):
        if enough is None:
            continue
        now = round((unit.fraction or 0) * HUNDREDTHS)
        nearest = _nearest(tried, unit, enough, now)
        if nearest is not None:
            found = True
            yield f"{unit.name}: fraction {unit.fraction:g} -> {nearest / HUNDREDTHS:g}"
    if found or len(shared) < 2 or any(number is None for number in least):
        return
    smaller = [(unit, (number or 0) / HUNDREDTHS) for unit, number in zip(shared, least, strict=True)]
    if tried.fits({name: want for unit, share in smaller for name, want in tried.wants(unit, share).items()}):
        told = ", ".join(
            f"{need.name} {unit.fraction:g} -> {share:g}" for unit, share in smaller for need in unit.needs
        )
        yield f"smaller fractions: {told}"


def _nearest(tried: Tried, unit: Unit, enough: int, now: int) -> int | None:
    """The largest that packs, below what is asked for; or the least that starts, above it."""

    def packs(hundredths: int) -> bool:
        return tried.fits(tried.wants(unit, hundredths / HUNDREDTHS))

    if not packs(enough):
        return None
    if enough >= now:
        return enough if enough != now else None
    low, high = enough, now - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if packs(middle) else (low, middle - 1)
    return low


def _pins(tried: Tried) -> Iterator[str]:
    for unit in tried.units:
        if unit.pinned and unit.placeable and tried.fits(tried.wants(unit, unit.fraction, fixed=())):
            yield f"{unit.name}: nodes: {unit.count} in place of the names {', '.join(unit.pinned)}"


def _functions(tried: Tried) -> Iterator[str]:
    """Groups of several Sparks that share one need a function of each rail each."""
    fabric = tried.cluster.fabric
    for count in range(fabric.vfs_per_rail + 1, MOST_FUNCTIONS + 1):
        more = tried.cluster.model_copy(update={"fabric": fabric.model_copy(update={"vfs_per_rail": count})})
        given = groups.functions(more)
        if len(given) > len(groups.functions(tried.cluster)) and tried.fits({}, given):
            yield f"fabric.yml: vfs_per_rail: {count}, a function of each rail for every group that shares Sparks"
            return


def _counts(tried: Tried) -> Iterator[str]:
    for unit in tried.units:
        if unit.pinned:
            continue
        for count in range(1, min(MOST_NODES, len(tried.cluster.nodes)) + 1):
            other = {need.name: _split(tried, need, count) for need in unit.needs} if count != unit.count else {}
            if other and None not in other.values() and tried.fits(other):
                yield f"{unit.name}: nodes: {count} instead of {unit.count}"
                break


def _split(tried: Tried, need: Need, count: int) -> Want | None:
    """The same group on another number of Sparks, where it can be cut so and fits them."""
    entry = need.entry.model_copy(update={"nodes": count})
    try:
        other = needs.one(tried.serving, need.number, tried.cluster, entry)
    except InputError:
        return None
    return None if other.launch is None else needs.want(other, tried.sparks, entry.fraction)


def _shared(tried: Tried) -> Iterator[str]:
    """Groups that have Sparks of their own, on shares of them: as few as will do."""
    own = [(unit, tried.least(unit)) for unit in tried.units if unit.fraction is None]
    able = [(unit, number / HUNDREDTHS) for unit, number in own if number is not None]
    for size in (1, 2, 3):
        for chosen in combinations(able, size):
            changed = {name: want for unit, share in chosen for name, want in tried.wants(unit, share).items()}
            if tried.fits(changed):
                told = " and ".join(f"{need.name} fraction: {share:g}" for unit, share in chosen for need in unit.needs)
                yield f"a shared Spark: {told} (the least that starts; more is more cache)"
                return


def _in_turn(tried: Tried) -> Iterator[str]:
    """Two that never need to answer at once, in one place: the first two that will do."""
    for one, other in combinations(tried.units, 2):
        if (one.count, one.fraction) != (other.count, other.fraction) or not (one.placeable and other.placeable):
            continue
        both = Unit((*one.needs, *other.needs))
        turn = next((need.turn for need in both.needs if need.turn), both.needs[0].name)
        if tried.fits(tried.wants(both, both.fraction, turn=turn)):
            yield f"one of them awake at a time: turns: {turn} and idle_minutes: for {both.name}"
            return


def _fewer(tried: Tried) -> Iterator[str]:
    spare = [need.name for need in tried.wanted if tried.fits({need.name: None})]
    if spare:
        yield f"one profile less: without {' or '.join(spare)}"
        return
    kept: list[Need] = []
    for need in tried.wanted:  # the list's order is whose turn it is
        others = [other.name for other in tried.wanted if other not in (*kept, need)]
        if tried.fits(dict.fromkeys(others)):
            kept.append(need)
    if kept:
        yield f"fewer profiles: {', '.join(need.name for need in kept)} fit together"
