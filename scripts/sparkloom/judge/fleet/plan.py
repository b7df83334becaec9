"""plan(serving, cluster, running): where each group goes and what is its own; or why not all can, and what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkloom.base.finding import Finding
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.serving import Serving
from sparkloom.judge.fleet import advice, needs, packing, refusal
from sparkloom.judge.fleet.needs import Hold, Need
from sparkloom.judge.fleet.problem import Held, Problem, Seat, Undecided
from sparkloom.judge.fleet.result import FleetPlan, Grouped
from sparkloom.launch import groups
from sparkloom.launch.groups import Placed


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
            return refusal.refused(blank, problem, advice.of(serving, wanted, cluster, sparks))
    except Undecided as error:
        return refusal.undecided(blank, error)
    return _packed(blank, seats, known)


def pose(
    wanted: Sequence[Need], cluster: Cluster, sparks: Mapping[str, Platform], known: Mapping[str, Placed] | None = None
) -> Problem | None:
    """The list as plain data; None where an entry cannot be placed whatever the others do."""
    if any(need.launch is None for need in wanted):
        return None
    asked = tuple(needs.want(need, sparks, need.entry.fraction) for need in wanted)
    held = {need.name: _held(need, known[need.name]) for need in wanted if known and need.name in known}
    return Problem(needs.spots(sparks), asked, groups.functions(cluster), held)


def _held(need: Need, running: Placed) -> Held:
    """A record has the profile's name, also of one that the list has by its path."""
    asked = (need.loaded.name, need.count, need.entry.fraction)
    same = (running.profile, len(running.nodes), running.fraction) == asked
    return Held(Seat(running.nodes, running.vf), same)


def _packed(blank: FleetPlan, seats: Mapping[str, Seat], known: Mapping[str, Placed]) -> FleetPlan:
    worst = [_worst(need, seats[need.name].nodes, blank.sparks) for need in blank.unplaced]
    placed = [
        _placed(need, seats[need.name], hold, known.get(need.name))
        for need, hold in zip(blank.unplaced, worst, strict=True)
    ]
    grouped = [
        Grouped(group, need, hold.fit, known[need.name].nodes if need.name in known else ())
        for need, hold, group in zip(blank.unplaced, worst, groups.allocate(placed, known), strict=True)
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
        told={**hold.told, **need.named()},
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
            need.where, "fleet-turn-of-one", f"{need.name} takes turns in {need.turn} with nobody", "",
            f"turns: {need.turn} for those that are to have its Sparks while it sleeps, or take the line out", "info",
        )
        for need in wanted
        if need.turn and often[need.turn] == 1
    ]  # fmt: skip


def _uncertain(one: Grouped) -> Finding:
    fix = "run playbooks/preflight.yml, which measures what is free on this site's nodes"
    return Finding(one.need.where, "fleet-uncertain", f"{one.group.name}: {one.fit.reason}", "", fix, "warning")
