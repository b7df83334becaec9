"""Makes what a site serves equal to its list, or to its one profile, step by step.

What runs is asked of the cluster, and stays unless it must not. A dry run says what each step would change. Each step
after `plan` takes the `run` that the one before it gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Literal

from sparkloom import case
from sparkloom.site import ansible, client
from sparkloom.site.ansible import Context, Data
from sparkloom.site.doctor import look as looks
from sparkloom.site.groups import observed, planning
from sparkloom.site.groups.group import RenderedGroup
from sparkloom.site.groups.proof import Options
from sparkloom.site.groups.reconcile import Reconciler, Run, Stopped, journal


def listed(
    context: Context,
    profile: str = "",  # what a site without a list serves
    force: bool = False,  # go on in spite of error findings
) -> Data:
    """Which groups there are to be, each with its profile, its nodes and its seat; without a cluster that answers, by
    what was recorded last."""
    cluster, given = context.cluster, ansible.listed(context.vars)
    if given is None:
        made = planning.alone(profile, cluster, {}) if profile else planning.Rollout([], [])
    else:
        planned = case.fleet(given, runs=observed.known(cluster))
        made = planning.Rollout(planning.members(planned), [])
        planning.refuse(planned.findings, force=force)
    return {"listed": given is not None, "groups": made.as_dict()["groups"]}


def plan(
    context: Context,
    options: Options,
    profile: str = "",  # what a site without a list serves
    replace: bool = False,  # whether another served profile may end for it
) -> Data:
    """Asks the cluster, judges every group, and says in which waves they end and start."""
    given = ansible.listed(context.vars)
    made = planning.rollout(given, profile, context.cluster, options["transport"])
    planning.refuse(made.findings, force=options["force"])
    if given is None and not replace and (told := planning.in_the_way(made, profile)):
        return {"failed": True, "msg": told}
    if made.said:
        context.say(made.said)
    return {"run": asdict(Run.of(made, options, listed=given is not None))}


def prepare(context: Context, run: Mapping[str, Any]) -> Data:
    """Judges the cluster and makes the Secrets of each group."""
    return _step(context, run, lambda does: does.prepare(does.run.groups))


def end(context: Context, run: Mapping[str, Any], wave: Mapping[str, Any]) -> Data:
    """Ends one wave."""
    return _step(context, run, lambda does: does.end(wave))


def start(
    context: Context,
    run: Mapping[str, Any],
    wave: Mapping[str, Any],  # one of the run's waves
    memory: str,  # variable that the nodes registered from `memory`, between the end and the start of a wave
) -> Data:
    """Starts one wave, and waits until each group is proved."""
    return _step(context, run, lambda does: does.start(wave, ansible.registered(context.vars, memory)))


def back(context: Context, run: Mapping[str, Any]) -> Data:
    """Plans the waves in which the last good profile of what did not start starts again."""
    return _step(context, run, lambda does: does.back(lambda name, good: _back(name, good, does, context.vars)))


def finish(context: Context, run: Mapping[str, Any]) -> Data:
    """Has the waker work again and records what runs; `run` is empty where the step before failed."""
    return _step(context, run, lambda does: does.finish())


def look(
    context: Context,
    part: Literal["cluster", "secrets", "objects", "ranks"],  # what is judged
    options: Options,
    profile: str = "",  # the group's
    seat: Mapping[str, Any] = {},  # what `listed` gave for the group
) -> Data:
    """One group, judged beside what would be applied."""
    cluster, member = context.cluster, {"profile": profile, "seat": seat}
    group = RenderedGroup.of(member, cluster, options["transport"], force=options["force"])
    return looks.look(part, looks.Asked(cluster, group, ansible.listed(context.vars)))


def _step(context: Context, run: Mapping[str, Any], step: Callable[[Reconciler], object]) -> Data:
    # A step that failed gave none, and the waker must work again all the same.
    if not (told := run or journal(client.of(context.cluster))):
        return {}
    does = Reconciler(
        context.cluster, Run(**told), context.say, lambda text: context.say(text, newline=False), dry=context.dry
    )
    try:
        step(does)
    except Stopped as stopped:
        return ansible.verdict(stopped.findings, "") | {"run": asdict(does.run)}
    differing = [one for one in does.changed if one.get("diff")]
    diff = [{"before_header": f"{one['kind']} {one['name']}", **one["diff"]} for one in differing]
    told = {"run": asdict(does.run), "ends": does.run.ends, "measured": does.measured}
    return {"changed": bool(does.changed), "diff": diff, **told}


def _back(name: str, good: str, does: Reconciler, task_vars: Data) -> planning.Rollout:
    group = name if does.run.listed else ""
    given = ansible.listed({**task_vars, "group": group, "profile": good})
    made = planning.rollout(given, good, does.cluster, does.options["transport"])
    return planning.only(made, group) if group else made
