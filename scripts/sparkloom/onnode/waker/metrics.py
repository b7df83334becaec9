"""What a Prometheus is told of the groups on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sparkloom.onnode.rank.exposition import KIND as KIND
from sparkloom.onnode.waker.controller import Controller
from sparkloom.onnode.waker.groups import Groups
from sparkloom.onnode.waker.state import PHASES, State

Sample = tuple[dict[str, str], float]


class Family(NamedTuple):
    name: str
    kind: str
    help: str
    read: Callable[[State, float], Iterable[Sample]]


def _phases(state: State, now: float) -> Iterable[Sample]:
    return [({"state": phase}, float(state.phase == phase)) for phase in PHASES]


def _results(state: State, now: float) -> Iterable[Sample]:
    return [({"result": result}, float(state.counts[result])) for result in ("ready", "failed")]


FAMILIES = (
    Family("sparkloom_waker_state", "gauge", "1 for what a group on demand is at, 0 for the others.", _phases),
    Family("sparkloom_waker_wakings_total", "counter", "Starts that came to an end, by result.", _results),
    Family("sparkloom_waker_sleeps_total", "counter", "Times that it was put to sleep.",
           lambda state, now: [({}, float(state.counts["slept"]))]),
    Family("sparkloom_waker_waking_seconds", "gauge", "The last start, from the first request to an answer.",
           lambda state, now: [] if state.took is None else [({}, state.took)]),
    Family("sparkloom_waker_waiting", "gauge", "Requests that wait for its start.",
           lambda state, now: [({}, float(state.waiting))]),
    Family("sparkloom_waker_unused_seconds", "gauge", "Since it was last used.",
           lambda state, now: [({}, max(0.0, now - state.used))]),
)  # fmt: skip
AGE = "sparkloom_waker_look_age_seconds"
NAMES = (*(family.name for family in FAMILIES), AGE)


def page(groups: Groups, controller: Controller) -> str:
    now, lines = groups.clock(), []
    for family in FAMILIES:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        for state in groups.states.values():
            own = {"group": state.group.label, "model": state.group.name}
            lines += [
                f"{family.name}{_labels({**own, **more})} {value:.15g}" for more, value in family.read(state, now)
            ]
    if controller.looked > float("-inf"):
        lines += [f"# HELP {AGE} Since the cluster was last seen whole.", f"# TYPE {AGE} gauge"]
        lines.append(f"{AGE} {max(0.0, now - controller.looked):.15g}")
    return "\n".join(lines) + "\n"


def _labels(named: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in named.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
