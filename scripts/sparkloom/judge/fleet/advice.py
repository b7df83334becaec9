"""What would make a refused list fit: each thing said here was tried with the same search, and fits.

The least intrusive first: a fraction, a pinned Spark, functions of the rails, another count of Sparks, sharing, one
profile less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.serving import LEAST_SHARE, Serving
from sparkloom.judge.fleet import needs, packing
from sparkloom.judge.fleet.needs import Need
from sparkloom.judge.fleet.problem import Problem, Undecided, Want
from sparkloom.launch import groups

MOST = 5  # things to choose from, on one screen
MOST_FUNCTIONS = 16  # of a port, as fabric.vfs_per_rail
MOST_NODES = 8
HUNDREDTHS = 100


def of(serving: Serving, wanted: Sequence[Need], cluster: Cluster, sparks: Mapping[str, Platform]) -> list[str]:
    """Sentences, each a change that is enough by itself."""
    tried = _Tried(serving, list(wanted), cluster, sparks)
    ways = (_fractions, _pins, _functions, _counts, _shared, _fewer)
    return list(islice((text for way in ways for text in way(tried)), MOST))


@dataclass(frozen=True, slots=True)
class _Tried:
    serving: Serving
    wanted: list[Need]
    cluster: Cluster
    sparks: Mapping[str, Platform]

    def want(self, need: Need, fraction: float | None = None) -> Want:
        return needs.want(need, self.sparks, fraction)

    def fits(self, changed: Mapping[str, Want | None], functions: tuple[int, ...] | None = None) -> bool:
        """The list with some of its groups otherwise, or (None) without them."""
        asked = []
        for need in self.wanted:
            want = changed.get(need.name) if need.name in changed else self._as_listed(need)
            if want is None and need.name not in changed:
                return False
            if want is not None:
                asked.append(want)
        given = groups.functions(self.cluster) if functions is None else functions
        try:
            return packing.fits(Problem(needs.spots(self.sparks), tuple(asked), given))
        except Undecided:
            return False

    def _as_listed(self, need: Need) -> Want | None:
        return None if need.launch is None else self.want(need, need.entry.fraction)

    def least(self, need: Need) -> int | None:
        """The smallest share, in hundredths, in which it starts on enough Sparks; None where none is enough."""
        if need.launch is None:
            return None
        spark = next(iter(self.sparks.values()))
        most = int(needs.room_mib(spark) / needs.MIB / spark.usable_gib * HUNDREDTHS)
        low, high = int(LEAST_SHARE * HUNDREDTHS), most + 1
        while low < high:
            middle = (low + high) // 2
            able = len(self.want(need, middle / HUNDREDTHS).able) >= need.count
            low, high = (low, middle) if able else (middle + 1, high)
        return low if low <= most else None


def _fractions(tried: _Tried) -> Iterator[str]:
    """One fraction otherwise, as near to what is asked for as may be; or all of them at their least."""
    shared = [need for need in tried.wanted if need.entry.fraction is not None and need.launch is not None]
    least = {need.name: tried.least(need) for need in shared}
    found = False
    for need in shared:
        if (enough := least[need.name]) is None:
            continue
        now = round((need.entry.fraction or 0) * HUNDREDTHS)
        nearest = _nearest(tried, need, enough, now)
        if nearest is not None:
            found = True
            yield f"{need.name}: fraction {need.entry.fraction:g} -> {nearest / HUNDREDTHS:g}"
    if found or len(shared) < 2 or any(number is None for number in least.values()):
        return
    changed = {need.name: tried.want(need, (least[need.name] or 0) / HUNDREDTHS) for need in shared}
    if tried.fits(changed):
        told = ", ".join(
            f"{need.name} {need.entry.fraction:g} -> {(least[need.name] or 0) / HUNDREDTHS:g}" for need in shared
        )
        yield f"smaller fractions: {told}"


def _nearest(tried: _Tried, need: Need, enough: int, now: int) -> int | None:
    """The largest that packs, below what is asked for; or the least that starts, above it."""

    def packs(hundredths: int) -> bool:
        return tried.fits({need.name: tried.want(need, hundredths / HUNDREDTHS)})

    if not packs(enough):
        return None
    if enough >= now:
        return enough if enough != now else None
    low, high = enough, now - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if packs(middle) else (low, middle - 1)
    return low


def _pins(tried: _Tried) -> Iterator[str]:
    for need in tried.wanted:
        if need.entry.pinned and need.launch is not None:
            free = replace(tried.want(need, need.entry.fraction), fixed=())
            if tried.fits({need.name: free}):
                yield f"{need.name}: nodes: {need.count} in place of the names {', '.join(need.entry.pinned)}"


def _functions(tried: _Tried) -> Iterator[str]:
    """Groups of several Sparks that share one need a function of each rail each."""
    fabric = tried.cluster.fabric
    for count in range(fabric.vfs_per_rail + 1, MOST_FUNCTIONS + 1):
        more = tried.cluster.model_copy(update={"fabric": fabric.model_copy(update={"vfs_per_rail": count})})
        given = groups.functions(more)
        if len(given) > len(groups.functions(tried.cluster)) and tried.fits({}, given):
            yield f"fabric.yml: vfs_per_rail: {count}, a function of each rail for every group that shares Sparks"
            return


def _counts(tried: _Tried) -> Iterator[str]:
    for need in tried.wanted:
        if need.entry.pinned:
            continue
        for count in range(1, min(MOST_NODES, len(tried.cluster.nodes)) + 1):
            if count != need.count and (other := _split(tried, need, count)) and tried.fits({need.name: other}):
                yield f"{need.name}: nodes: {count} instead of {need.count}"
                break


def _split(tried: _Tried, need: Need, count: int) -> Want | None:
    """The same group on another number of Sparks, where it can be cut so and fits them."""
    entry = need.entry.model_copy(update={"nodes": count})
    try:
        other = needs.one(tried.serving, need.number, tried.cluster, entry)
    except InputError:
        return None
    return None if other.launch is None else tried.want(other, entry.fraction)


def _shared(tried: _Tried) -> Iterator[str]:
    """Groups that have Sparks of their own, on shares of them: as few as will do."""
    own = [need for need in tried.wanted if need.entry.fraction is None]
    least = {need.name: number for need in own if (number := tried.least(need)) is not None}
    able = [need for need in own if need.name in least]
    for size in (1, 2, 3):
        for chosen in combinations(able, size):
            changed = {need.name: tried.want(need, least[need.name] / HUNDREDTHS) for need in chosen}
            if tried.fits(changed):
                told = " and ".join(f"{need.name} fraction: {least[need.name] / HUNDREDTHS:g}" for need in chosen)
                yield f"a shared Spark: {told} (the least that starts; more is more cache)"
                return


def _fewer(tried: _Tried) -> Iterator[str]:
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
