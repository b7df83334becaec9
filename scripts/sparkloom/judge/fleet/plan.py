"""plan(serving, cluster, running): where each group goes and what is its own; or why not all can, and what helps."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkloom.base.finding import Finding
from sparkloom.inputs import addressing
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.serving import Serving
from sparkloom.judge.capacity import search
from sparkloom.judge.fleet import advice, needs, packing
from sparkloom.judge.fleet.needs import Hold, Need
from sparkloom.judge.fleet.problem import Held, Problem, Seat, Undecided, by_turn
from sparkloom.judge.fleet.result import FleetPlan, Grouped
from sparkloom.launch import groups
from sparkloom.launch.groups import Placed

# What the list itself can be blamed for.
RULES = ("fleet-does-not-fit", "fleet-undecided", "fleet-uncertain", "fleet-turn-of-one", "fleet-nobody-wakes")
UNDECIDED = "too many ways to look at all of them; give some groups their Sparks by nodes: [...]"


def plan(serving: Serving, cluster: Cluster, running: Mapping[str, Placed] | None = None) -> FleetPlan:
    """`running`: what is recorded of the groups that run; they stay where they are unless they must not."""
    wanted, known = needs.of(serving, cluster), running or {}
    sparks = needs.platforms(cluster)
    gone = sorted(set(known) - {need.name for need in wanted})
    blank = FleetPlan(cluster, sparks, False, "", unplaced=wanted, gone=gone)
    blank.findings.extend(_nobody_wakes(serving))
    problem = pose(wanted, cluster, sparks, known)
    try:
        seats = packing.solve(problem) if problem else None
        if seats is None:
            return _refused(blank, problem, advice.of(serving, wanted, cluster, sparks))
    except Undecided as error:
        return _undecided(blank, error)
    return _packed(blank, seats, known)


def pose(
    wanted: Sequence[Need], cluster: Cluster, sparks: Mapping[str, Platform], known: Mapping[str, Placed] | None = None
) -> Problem | None:
    """The list as plain data; None where an entry cannot be placed whatever the others do."""
    if any(need.launch is None for need in wanted):
        return None
    asked = tuple(needs.want(need, sparks, need.entry.fraction) for need in wanted)
    held = {need.name: _held(need, known[need.name]) for need in wanted if known and need.name in known}
    return Problem(needs.spots(sparks), asked, addressing.functions_of_pods(cluster), held)


def _held(need: Need, running: Placed) -> Held:
    """A record has the profile's name, also of one that the list has by its path."""
    asked = (need.loaded.name, need.count, need.entry.fraction)
    same = (running.profile, len(running.nodes), running.fraction) == asked
    return Held(Seat(running.nodes, running.vf), same)


def _packed(blank: FleetPlan, seats: Mapping[str, Seat], known: Mapping[str, Placed]) -> FleetPlan:
    worst = [_worst(need, seats[need.name].nodes, blank.sparks) for need in blank.unplaced]
    held = list(zip(blank.unplaced, worst, strict=True))
    placed = [_placed(need, seats[need.name], hold, known.get(need.name)) for need, hold in held]
    grouped = [
        Grouped(group, need, hold.fit, known[need.name].nodes if need.name in known else ())
        for (need, hold), group in zip(held, groups.allocate(placed, known), strict=True)
    ]
    unsure = [one for one in grouped if one.fit.fits is None]
    # of two groups with one profile everything is said once
    findings = list(dict.fromkeys(finding for one in grouped for finding in one.findings(blank.cluster)))
    findings += [*map(_uncertain, unsure), *_by_itself(blank.unplaced), *blank.findings]
    reason = f"{', '.join(one.group.name for one in unsure)}: uncertain, see below" if unsure else ""
    fits = None if unsure else True
    return replace(blank, fits=fits, reason=reason, grouped=grouped, unplaced=[], findings=findings)


def _worst(need: Need, nodes: Sequence[str], sparks: Mapping[str, Platform]) -> Hold:
    """Of its Sparks the one that has least room for it."""
    holds = [need.held(sparks[node], need.entry.fraction) for node in nodes]
    return min(holds, key=lambda hold: {None: 0, True: 1}.get(hold.fit.fits, -1))


def _placed(need: Need, seat: Seat, hold: Hold, running: Placed | None) -> Placed:
    entry = need.entry
    return Placed(
        name=need.name,
        profile=entry.profile,
        nodes=seat.nodes,
        vf=seat.vf,
        alias=need.alias,
        port=need.launch.port if need.launch else 0,
        fraction=entry.fraction,
        idle_minutes=entry.idle_minutes,
        turns=need.turn,
        flags={**hold.limits, **need.named()},
        where=need.where,
        overrides=need.overrides,
        state=_state(need, seat, running),
    )


def _state(need: Need, seat: Seat, running: Placed | None) -> str:
    """What becomes of it."""
    if running is None:
        return "new"
    held = _held(need, running)
    return "changes" if not held.same else "stays" if held.seat == seat else "moves"


def _nobody_wakes(serving: Serving) -> list[Finding]:
    """Where no request of a client's comes through anything of ours."""
    names = ", ".join(serving.entries[number].called for number in serving.demanded)
    if not names or serving.reached:
        return []
    message = f"{names}: on demand, and this site has no endpoint that would wake what sleeps (gateway_enabled: false)"
    fix = "take idle_minutes out, or let playbooks/gateway.yml open one"
    where = serving.where(serving.demanded[0], "idle_minutes")
    return [Finding(where, "fleet-nobody-wakes", message, "", fix, "warning")]


def _by_itself(wanted: Sequence[Need]) -> list[Finding]:
    """A turn of one is no mistake: the others may come later, or are taken out for a while."""
    often = Counter(need.turn for need in wanted if need.turn)
    return [
        Finding(
            need.where,
            "fleet-turn-of-one",
            f"{need.name} takes turns in {need.turn} with nobody",
            "",
            f"turns: {need.turn} for those that are to have its Sparks while it sleeps, or take the line out",
            "info",
        )
        for need in wanted
        if need.turn and often[need.turn] == 1
    ]


def _uncertain(one: Grouped) -> Finding:
    fix = "run playbooks/preflight.yml, which measures what is free on this site's nodes"
    return Finding(one.need.where, "fleet-uncertain", f"{one.group.name}: {one.fit.reason}", "", fix, "warning")


def _refused(blank: FleetPlan, problem: Problem | None, helps: list[str]) -> FleetPlan:
    """At the line of the first group that fits nowhere, else of the last of the list, which was one too many."""
    sparks = blank.sparks
    alone = {need.where: text for need in blank.unplaced if (text := _alone(need, sparks, len(blank.cluster.nodes)))}
    alone |= {} if alone or problem is None else _together(blank.unplaced, problem)
    reason = "; ".join(alone.values()) or f"{_crowded(blank.unplaced, sparks)}{_cause(problem)}"
    where = next(iter(alone), blank.unplaced[-1].where)
    fix = "; or ".join(helps) or "fewer or smaller models, or more Sparks"
    finding = Finding(where, "fleet-does-not-fit", reason, "", fix)
    return replace(blank, reason=reason, advice=helps, findings=[*_own(blank), finding])


def _undecided(blank: FleetPlan, error: Undecided) -> FleetPlan:
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
    with contextlib.suppress(Undecided):
        if problem.functions and packing.fits(replace(problem, functions=tuple(range(advice.MOST_FUNCTIONS)))):
            return (
                f"; groups of several Sparks that share one need a function of each rail each, and there are "
                f"{len(problem.functions)} for serving"
            )
        if packing.fits(replace(problem, wants=loose)):
            return "; they do not fit on the Sparks that `nodes:` names"
    return ""
