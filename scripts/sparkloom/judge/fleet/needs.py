"""What one entry of `serve:` asks of Sparks: how many, how much memory of each, and which of them can hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor

from sparkloom.base import amount
from sparkloom.base.errors import InputError, Problem
from sparkloom.base.finding import Finding
from sparkloom.inputs import profile as profiles
from sparkloom.inputs import site_memory
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.profile import FlagValue, LoadedProfile, Parallel
from sparkloom.inputs.serving import Serving, Wanted
from sparkloom.judge import flags, profile_status, rules
from sparkloom.judge.capacity.search import split_over, written
from sparkloom.judge.fleet.problem import Spot, Want
from sparkloom.launch import engines
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.resolve import Launch, resolve
from sparkloom.launch.view import ModelView

MIB = 1024  # in a GiB


@dataclass(frozen=True, slots=True)
class Need:
    """`launch` is None where this inventory cannot have it at all, which `barred` says in words."""

    number: int  # in the list
    entry: Wanted
    where: str
    loaded: LoadedProfile
    parallel: Parallel
    launch: Launch | None
    barred: str = ""
    findings: list[Finding] = field(default_factory=list)
    overrides: tuple[str, ...] = ()  # by which the profile is cut over as many Sparks as the entry says
    known: dict[tuple[Platform, float | None], Hold] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.entry.called

    @property
    def count(self) -> int:
        return self.parallel.nodes

    @property
    def turn(self) -> str:
        """In which it takes turns with others; empty where it takes none."""
        return self.entry.turns or ""

    @property
    def alias(self) -> str:
        """What clients ask for: as the inventory says, as the profile says, or the model's own name."""
        if self.entry.alias or self.launch is None:
            return self.entry.alias or self.loaded.profile.model.id
        adapter = engines.get(self.launch.engine)
        told = adapter.canonical(self.launch.settings).get(adapter.called.get("model name", ""))
        first = told[0] if isinstance(told, list) and told else told
        return str(first) if isinstance(first, str) and first else self.loaded.profile.model.id

    def named(self) -> dict[str, FlagValue]:
        """The flag by which the engine answers to the alias, where the list gives one."""
        flag = engines.of(self.loaded).called.get("model name", "")
        return {flag: self.entry.alias} if flag and self.entry.alias else {}

    def view(self, platform: Platform) -> ModelView:
        assert self.launch is not None, "judged only where it can be placed"
        return self.launch.view(platform)

    def held(self, platform: Platform, fraction: float | None) -> Hold:
        """How it does on such a Spark: with all of it, or with a share."""
        if (platform, fraction) not in self.known:
            self.known[platform, fraction] = self._held(platform, fraction)
        return self.known[platform, fraction]

    def _held(self, platform: Platform, fraction: float | None) -> Hold:
        if fraction is None:
            return Hold(engines.fit(self.view(platform)), {})
        gib = fraction * platform.usable_gib
        view, told = engines.shared(self.view(platform), gib)
        return Hold(_with_page_cache(engines.fit(view), gib), told)


@dataclass(frozen=True, slots=True)
class Hold:
    """`told`: flags without which an engine would not keep to its share."""

    fit: Fit
    limits: dict[str, FlagValue]


def of(serving: Serving, cluster: Cluster) -> list[Need]:
    """Of each entry; what nobody could launch anywhere is refused at its line."""
    found = [one(serving, number, cluster) for number in range(len(serving.entries))]
    for wrong in (_same_alias, _other_count):
        if problems := list(wrong(serving, found)):
            raise InputError(problems)
    return found


def one(serving: Serving, number: int, cluster: Cluster, entry: Wanted | None = None) -> Need:
    """`entry`: what is tried in place of what stands in the list."""
    asked = entry or serving.entries[number]
    loaded = profiles.load(asked.profile)
    parallel = _parallel(serving, number, asked, loaded)
    overrides = written(parallel) if parallel != loaded.profile.launch.parallel else ()
    if overrides:
        loaded = profiles.load(asked.profile, overrides=overrides)
    flags.require_known(loaded)
    where = serving.where(number)
    if barred := _barred(parallel, cluster):
        return Need(number, asked, where, loaded, parallel, None, barred)
    launch = resolve(loaded, cluster)
    return Need(number, asked, where, loaded, parallel, launch, "", judged(launch, cluster), overrides)


def judged(launch: Launch, cluster: Cluster) -> list[Finding]:
    """What speaks against a launch beside its memory, which depends on who else is there."""
    sparks = site_memory.platform(cluster.name, [place.node.name for place in launch.topology.places])
    return [*flags.check(launch), *rules.check(launch, sparks), *profile_status.check(launch.profile)]


def _parallel(serving: Serving, number: int, entry: Wanted, loaded: LoadedProfile) -> Parallel:
    """The profile's own split, or the same kind of it over as many Sparks as the entry says."""
    own = loaded.profile.launch.parallel
    if entry.count is None or entry.count == own.nodes:
        return own
    split = split_over(loaded.profile.model, own, entry.count)
    if split is None:
        message = (
            f"nodes: {loaded.name} cannot be split over {entry.count} Sparks as it is over {own.nodes} (heads, experts "
            f"or copies do not divide); write {own.nodes}, or take a profile for {entry.count}"
        )
        raise InputError([serving.problem(number, message, "no-such-split", "nodes")])
    return split


def _barred(parallel: Parallel, cluster: Cluster) -> str:
    if parallel.nodes > len(cluster.nodes):
        return f"it needs {parallel.nodes} Sparks, and this inventory has {len(cluster.nodes)}"
    if parallel.nodes > 1 and not cluster.fabric.rails:
        return f"its {parallel.nodes} ranks meet over rails, and fabric.yml of '{cluster.name}' has none"
    return ""


def _same_alias(serving: Serving, found: Sequence[Need]) -> Iterator[Problem]:
    """Requests find their group by its alias."""
    first: dict[str, Need] = {}
    for need in found:
        if (other := first.setdefault(need.alias, need)) is not need:
            message = (
                f"{need.name} and {other.name} both answer to '{need.alias}', and a request could mean either; write "
                "`alias:` for one of them"
            )
            yield serving.problem(need.number, message, "same-alias")


def _other_count(serving: Serving, found: Sequence[Need]) -> Iterator[Problem]:
    """As many Sparks for each of a turn: how many is known once the profiles are read."""
    first: dict[str, Need] = {}
    for need in found:
        other = first.setdefault(need.turn, need) if need.turn else need
        if other.count != need.count:
            message = (
                f"{need.name} takes {amount.of(need.count, 'Spark')}, and {other.name} of turn {need.turn} "
                f"{amount.of(other.count, 'Spark')}; they take turns in one place: "
                f"write `nodes: {other.count}`, or another turn"
            )
            key = "turns" if need.entry.nodes is None else "nodes"
            yield serving.problem(need.number, message, "turns-differ", key)


def _with_page_cache(fit: Fit, gib: float) -> Fit:
    """What a file of the checkpoint takes in the page cache while it is read must fit into the share, too."""
    weights = fit.memory["weights_gib_per_rank"].number
    free = fit.memory["free_before_load_gib"].number
    room, file = free - weights, constants.LOADED_FILE_GIB.number
    fit.memory["page_cache_gib"] = constants.LOADED_FILE_GIB
    if fit.fits is False or room >= file:
        return fit
    reason = (
        f"{weights:.1f} GiB of weights leave {max(0.0, room):.1f} of a share of {gib:.1f} GiB; {file:g} are needed for "
        "the page cache while they are read"
    )
    return Fit(False, reason, fit.memory, fit.limits, fit.notes, file - room)


def platforms(cluster: Cluster) -> dict[str, Platform]:
    """Each Spark with what preflight measured of it."""
    return {node.name: site_memory.platform(cluster.name, [node.name]) for node in cluster.nodes}


def free_gib(platform: Platform) -> float:
    """Of an idle Spark: measured, or what a bare one has."""
    if platform.measured_free_gib is not None:
        return platform.measured_free_gib[0]
    return platform.usable_gib - constants.BARE_HOST_GIB.number


def memory(platform: Platform) -> dict[str, float]:
    """As plan and page tell it."""
    guard = constants.GUARD_FLOOR_GIB.number
    return {"usable_gib": platform.usable_gib, "free_gib": round(free_gib(platform), 2), "guard_gib": guard}


def room_mib(platform: Platform) -> int:
    """What groups may share: all that is free, less what the memory guard keeps."""
    return max(0, floor((free_gib(platform) - constants.GUARD_FLOOR_GIB.number) * MIB))


def spots(sparks: Mapping[str, Platform]) -> tuple[Spot, ...]:
    return tuple(Spot(name, room_mib(spark)) for name, spark in sparks.items())


def want(need: Need, sparks: Mapping[str, Platform], fraction: float | None) -> Want:
    """The same as plain data, with a share or with Sparks of its own."""
    able = frozenset(name for name, spark in sparks.items() if need.held(spark, fraction).fit.fits is not False)
    spark = next(iter(sparks.values()))
    share = None if fraction is None else ceil(fraction * spark.usable_gib * MIB)
    return Want(need.name, need.count, able, share, need.entry.pinned, need.count > 1, need.turn)
