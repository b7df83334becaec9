"""What a Prometheus is told of the groups on demand."""

from __future__ import annotations

from collections.abc import Iterable

from sparkloom.onnode.prometheus import Family
from sparkloom.onnode.prometheus import Labelled as Sample
from sparkloom.onnode.waker.controller import Controller
from sparkloom.onnode.waker.groups import Groups
from sparkloom.onnode.waker.state import PHASES, State


def _phases(state: State, now: float) -> Iterable[Sample]:
    return [({"state": phase}, float(state.phase == phase)) for phase in PHASES]


def _results(state: State, now: float) -> Iterable[Sample]:
    return [({"result": result}, float(state.counts[result])) for result in ("ready", "failed")]


FAMILIES = (
    Family("sparkloom_waker_state", "gauge", "1 for what a group on demand is at, 0 for the others.", _phases),
    Family("sparkloom_waker_wakings_total", "counter", "Starts that came to an end, by result.", _results),
    Family(
        "sparkloom_waker_sleeps_total",
        "counter",
        "Times that it was put to sleep.",
        lambda state, now: [({}, float(state.counts["slept"]))],
    ),
    Family(
        "sparkloom_waker_waking_seconds",
        "gauge",
        "The last start, from the first request to an answer.",
        lambda state, now: [] if state.took is None else [({}, state.took)],
    ),
    Family(
        "sparkloom_waker_waiting",
        "gauge",
        "Requests that wait for its start.",
        lambda state, now: [({}, float(state.waiting))],
    ),
    Family(
        "sparkloom_waker_unused_seconds",
        "gauge",
        "Since it was last used.",
        lambda state, now: [({}, max(0.0, now - state.used))],
    ),
)
AGE = Family("sparkloom_waker_look_age_seconds", "gauge", "Since the cluster was last seen whole.")
NAMES = tuple(family.name for family in (*FAMILIES, AGE))


def page(groups: Groups, controller: Controller) -> str:
    now, pages = groups.clock(), []
    for one in FAMILIES:
        samples = (
            ({"group": state.group.label, "model": state.group.name, **more}, value)
            for state in groups.states.values()
            for more, value in one.read(state, now)
        )
        pages.append(one.text(samples))
    if controller.looked > float("-inf"):
        pages.append(AGE.text([({}, max(0.0, now - controller.looked))]))
    return "".join(pages)
