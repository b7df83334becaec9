"""Was a group used since the last look? What cannot be read says yes.

The router counts every request, those that it leads here too. Whoever goes around it has a connection to the engine,
which the supervisor counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sparkloom.onnode.prometheus import samples
from sparkloom.onnode.waker.state import Group, Use

WHAT = ("upstream_rq_total", "upstream_rq_active", "upstream_rq_pending_active", "membership_healthy")
FILTER = f"({'|'.join(WHAT)})$"
SERIES = {f"envoy_cluster_{what}": what for what in WHAT}
HERE = "+waker"  # behind a group's name: the router's way to this program


class Count(NamedTuple):
    """`now`: requests that are on their way, or kept back; `healthy`: as the router's health checks found it."""

    total: int = 0
    now: int = 0
    healthy: bool = True


Counts = Mapping[str, Mapping[str, Count] | None]  # of each router's pod by its id; None of one that did not answer


def called(group: Group) -> set[str]:
    """As the router may count it: by its name, or by one that has no dots."""
    return {group.name, group.label, group.address.partition(".")[0]}


def read(page: str) -> dict[str, Count]:
    """By the cluster's name."""
    found: dict[str, Count] = {}
    for sample in samples(page, SERIES):
        name, what, value = sample.label("envoy_cluster_name"), SERIES[sample.name], int(sample.value)
        count = found.get(name, Count())
        if what == "upstream_rq_total":
            count = count._replace(total=value)
        elif what == "membership_healthy":
            count = count._replace(healthy=value > 0)
        else:
            count = count._replace(now=count.now + value)
        found[name] = count
    return found


def routed(group: Group, counts: Counts) -> bool:
    """No router holds it for away."""
    known = [one[name] for one in counts.values() if one for name in called(group) if name in one]
    return all(count.healthy for count in known)


class Counters:
    """What each of the router's pods counted at the last look: a pod that is made anew begins with nothing."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], int] = {}

    def evidence(self, groups: tuple[Group, ...], pods: Counts) -> dict[str, Use]:
        """Without any pod nothing is known."""
        now: dict[tuple[str, str], int] = {}
        told: dict[str, Use] = {}
        for group in groups:
            uses = [self._of(group, pod, counts, now) for pod, counts in pods.items()]
            told[group.name] = "idle" if uses and not any(uses) else "used"
        silent = {pod for pod, counts in pods.items() if counts is None}
        self._before = {**{key: total for key, total in self._before.items() if key[0] in silent}, **now}
        return told

    def _of(self, group: Group, pod: str, counts: Mapping[str, Count] | None, now: dict[tuple[str, str], int]) -> bool:
        if counts is None:
            return True
        names = called(group)
        if not names & counts.keys():
            return True  # this router does not say what it knows of the group
        used = False
        for name in (*names, *(name + HERE for name in names)):
            if count := counts.get(name):
                before = self._before.get((pod, name), 0)
                now[pod, name] = count.total
                used = used or count.now > 0 or count.total > before or 0 < count.total < before
        return used


def either(router: Use, connections: int | None) -> Use:
    """With what the supervisor says: open connections of clients, None where it says nothing."""
    if router == "used" or connections is None:
        return "used"
    return "perhaps" if connections else "idle"
