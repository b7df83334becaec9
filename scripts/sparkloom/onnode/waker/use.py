"""Was a group used since the last look? What cannot be read says yes.

The router counts every request, those that it leads here too. Whoever goes around it has a connection to the engine,
which the supervisor counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from sparkloom.onnode.waker.state import Use
from sparkloom.onnode.waker.told import Group

FILTER = "upstream_rq_(total|active|pending_active)$"
# Envoy takes what is behind the first dot of a cluster's name for a part of the series' own.
LINE = re.compile(
    r'^envoy_cluster_(?:(\w+)_)?upstream_rq_(total|active|pending_active)\{envoy_cluster_name="([^"]+)"\} (\d+)$', re.M
)
HERE = "+waker"  # behind a group's name: the router's way to this program


class Count(NamedTuple):
    total: int = 0
    now: int = 0  # on their way, or kept back


def called(group: Group) -> tuple[str, ...]:
    """As the router may count it: by its name, or by one that has no dots."""
    return group.name, group.label, group.address.partition(".")[0]


def plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def read(page: str) -> dict[str, Count]:
    """By the cluster's name, as far as a series' name can tell it."""
    found: dict[str, Count] = {}
    for more, kind, name, value in LINE.findall(page):
        key = plain(f"{name}.{more}" if more else name)
        count = found.get(key, Count())
        number = int(value)
        found[key] = (
            count._replace(total=count.total + number) if kind == "total" else count._replace(now=count.now + number)
        )
    return found


class Counters:
    """What each of the router's pods counted at the last look: a pod that is made anew begins with nothing."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], int] = {}

    def evidence(self, groups: tuple[Group, ...], pages: Mapping[str, str | None]) -> dict[str, Use]:
        """`pages`: of each pod by its id; None of one that did not answer. Without any pod nothing is known."""
        read_pages = {pod: None if page is None else read(page) for pod, page in pages.items()}
        now: dict[tuple[str, str], int] = {}
        told: dict[str, Use] = {}
        for group in groups:
            uses = [self._of(group, pod, counts, now) for pod, counts in read_pages.items()]
            told[group.name] = "idle" if uses and not any(uses) else "used"
        silent = {pod for pod, counts in read_pages.items() if counts is None}
        self._before = {**{key: total for key, total in self._before.items() if key[0] in silent}, **now}
        return told

    def _of(self, group: Group, pod: str, counts: Mapping[str, Count] | None, now: dict[tuple[str, str], int]) -> bool:
        if counts is None:
            return True
        names = {plain(name) for name in called(group)}
        if not names & counts.keys():
            return True  # this router does not say what it knows of the group
        used = False
        for name in (*names, *(plain(name + HERE) for name in called(group))):
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
