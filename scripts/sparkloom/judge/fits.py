"""What capacity has to say as findings: a launch that does not fit is refused like one that a rule knows to fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkloom.base.finding import Finding, Severity
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.judge import profile_status
from sparkloom.judge.capacity import search
from sparkloom.launch import engines
from sparkloom.launch.memory import constants, weights
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.resolve import Launch
from sparkloom.launch.view import ModelView

HEAVIER = "no flag helps: a smaller checkpoint, or more Sparks than eight"
MEASURE = "run playbooks/preflight.yml, which measures what is free on this site's nodes"


def check(launch: Launch, cluster: Cluster, platform: Platform = GB10) -> list[Finding]:
    return [*_fits(launch, cluster, platform), *_weights(launch)]


def _fits(launch: Launch, cluster: Cluster, platform: Platform) -> Iterator[Finding]:
    view = launch.view(platform)
    fit = engines.fit(view)
    yield from _guarded(launch, fit)
    if fit.fits is True:
        return
    change = search.smallest(view, len(cluster.nodes))
    where = launch.where(change.overrides[0].partition("=")[0].split(".")[1] if change else "parallel")
    if fit.fits is False:
        fix = change.text if change else HEAVIER
        if platform.measured_free_gib is None and _with_all(view).fits:
            fix += f"; or {MEASURE} (preflight_force=true lets it go on that far)"
        yield Finding(where, "does-not-fit", fit.reason, expected="", fix=fix)
        return
    fix = MEASURE if platform.measured_free_gib is None else "keep the change at hand"
    fix += f"; sure to fit: {change.text}" if change else ""
    ran = _ran(launch)
    reason = f"{fit.reason}. On others' Sparks it ran: {ran}" if ran else fit.reason
    severity: Severity = "info" if ran else "warning"
    yield Finding(where, "fit-uncertain", reason, expected="", fix=fix, severity=severity)


def _ran(launch: Launch) -> str:
    """Who is known to have served this very launch; on which image matters less than with which flags."""
    profile = launch.profile.profile
    best = profile_status.best_evidence(profile)
    if best is None or best.status not in ("measured", "vendor"):
        return ""
    other = [part.key for part in profile_status.differences(profile) if not part.key.startswith("engine.")]
    return best.source if best.config and not other else ""


def _guarded(launch: Launch, fit: Fit) -> Iterator[Finding]:
    """What starts may still be stopped: the guard on each node knows only what is available there."""
    headroom = fit.memory.get("headroom_gib")
    planned, floor = headroom.number if headroom else 0.0, constants.GUARD_FLOOR_GIB.number
    if fit.fits is False or headroom is None or planned >= floor:
        return
    flag = engines.get(launch.engine).called.get("memory", "parallel")
    care = constants.HEADROOM_CARE_GIB
    message = (
        f"{planned:.1f} GiB are planned to stay free, and a node's memory guard stops an engine below {floor:g} "
        f"available (node_base_memory_floor_gib); {care.value:g} GiB {care.formula} ({care.origin})"
    )
    fix = f"when the guard's journal shows it acting, {flag} lower; not the floor"
    severity: Severity = "warning" if fit.fits and planned + care.number < floor else "info"
    yield Finding(launch.where(flag), "near-guard-floor", message, expected="", fix=fix, severity=severity)


def _with_all(view: ModelView) -> Fit:
    """On a site whose idle nodes have as much free as any that was seen."""
    most = view.platform.usable_gib - constants.BEST_SEEN_GIB.number
    return engines.fit(replace(view, platform=replace(view.platform, measured_free_gib=(most, most))))


def _weights(launch: Launch) -> Iterator[Finding]:
    """The size of a checkpoint is the check of the facts that everything is computed from."""
    doubt = weights.disagreement(launch.profile.profile.model)
    if doubt:
        where = launch.profile.where("model", "checkpoint", "size_gb")
        fix = "correct model.layers, widths or precision from config.json, or size_gb from the hub's file list"
        yield Finding(where, "weights-disagree", doubt.text, expected="", fix=fix, severity="warning")
