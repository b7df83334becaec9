"""Why groups cannot be served together: which of them fits nowhere, or what they ask for beside what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkloom.base.finding import Finding
from sparkloom.inputs.platform import Platform
from sparkloom.judge.capacity import search
from sparkloom.judge.fleet import needs, packing
from sparkloom.judge.fleet.needs import Need
from sparkloom.judge.fleet.problem import Problem, Undecided, by_turn
from sparkloom.judge.fleet.result import FleetPlan

# What the list itself can be blamed for.
RULES = ("fleet-does-not-fit", "fleet-undecided", "fleet-uncertain", "fleet-turn-of-one", "fleet-nobody-wakes")
UNDECIDED = "too many ways to look at all of them; give some groups their Sparks by nodes: [...]"
MOST_FUNCTIONS = 16  # of a port


def refused(blank: FleetPlan, problem: Problem | None, helps: list[str]) -> FleetPlan:
    """At the line of the first group that fits nowhere, else of the last of the list, which was one too many."""
    sparks = blank.sparks
    alone = {need.where: text for need in blank.unplaced if (text := _alone(need, sparks, len(blank.cluster.nodes)))}
    alone |= {} if alone or problem is None else _together(blank.unplaced, problem)
    reason = "; ".join(alone.values()) or f"{_crowded(blank.unplaced, sparks)}{_cause(problem)}"
    where = next(iter(alone), blank.unplaced[-1].where)
    fix = "; or ".join(helps) or "fewer or smaller models, or more Sparks"
    finding = Finding(where, "fleet-does-not-fit", reason, "", fix)
    return replace(blank, reason=reason, advice=helps, findings=[*_own(blank), finding])


def undecided(blank: FleetPlan, error: Undecided) -> FleetPlan:
    where = blank.unplaced[-1].where
    finding = Finding(where, "fleet-undecided", f"{error}: {UNDECIDED}", "", "pin the largest groups first")
    return replace(blank, reason=finding.message, findings=[*_own(blank), finding])


def _own(blank: FleetPlan) -> list[Finding]:
    return list(dict.fromkeys(finding for need in blank.unplaced for finding in need.findings))


def _alone(need: Need, sparks: Mapping[str, Platform], nodes: int) -> str:
    """Why this group would not even fit if it were alone; empty where it would."""
    if need.launch is None:
        return f"{need.name}: {need.barred}"
    asked = needs.want(need, sparks, need.entry.fraction)
    there = need.entry.pinned or tuple(sparks)
    if sum(node in asked.able for node in there) >= need.count:
        return ""
    node = next(node for node in there if node not in asked.able)
    text = f"{need.name} does not fit {'a Spark' if need.count == 1 else f'{need.count} Sparks'}"
    text += f" at fraction {need.entry.fraction:g}" if need.entry.fraction is not None else ""
    text += f": {need.held(sparks[node], need.entry.fraction).fit.reason}"
    change = search.smallest(need.view(sparks[node]), nodes) if need.entry.fraction is None and nodes else None
    return text + (f" (in the profile: {change.text})" if change else "")


def _together(wanted: Sequence[Need], problem: Problem) -> dict[str, str]:
    """Turns for which no Sparks hold each of their groups, though each would fit somewhere; by the first one's line."""
    said = {}
    for place in problem.places:
        there = place.want.fixed or [spot.name for spot in problem.spots]
        if sum(node in place.want.able for node in there) < place.want.count:
            first = next(need for need in wanted if need.name == place.names[0])
            where = "the Sparks that `nodes:` names do not hold" if place.want.fixed else "no Sparks hold"
            said[first.where] = f"{', '.join(place.names)} take turns in {place.want.turn}, and {where} each of them"
    return said


def _crowded(wanted: Sequence[Need], sparks: Mapping[str, Platform]) -> str:
    """What is asked for together, beside what there is."""
    spark = next(iter(sparks.values()))
    places = [those[-1] for those in by_turn(wanted)]
    whole = sum(need.count for need in places if need.entry.fraction is None)
    shares = [(need.count, need.entry.fraction) for need in places if need.entry.fraction is not None]
    asked = [f"{whole} of their own"] if whole else []
    there = f"there are {len(sparks)} Sparks"
    if shares:
        total = sum(count * fraction for count, fraction in shares)
        asked.append(f"{sum(count for count, _ in shares)} shares that sum to {total:.2f}")
        most = needs.room_mib(spark) / needs.MIB / spark.usable_gib
        there += f", of which {most:.2f} each may be shared (the host and its memory guard have the rest)"
    return f"{len(wanted)} groups ask for {' and '.join(asked)}; {there}"


def _cause(problem: Problem | None) -> str:
    """Where counting does not say why: what would pack without that limit."""
    if problem is None:
        return ""
    loose = tuple(replace(want, fixed=()) for want in problem.wants)
    try:
        if problem.functions and packing.fits(replace(problem, functions=tuple(range(MOST_FUNCTIONS)))):
            return (
                f"; groups of several Sparks that share one need a function of each rail each, and there are "
                f"{len(problem.functions)} for serving"
            )
        if packing.fits(replace(problem, wants=loose)):
            return "; they do not fit on the Sparks that `nodes:` names"
    except Undecided:
        pass
    return ""
