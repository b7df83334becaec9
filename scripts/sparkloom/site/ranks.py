"""Every planned rank as it is: its pod, its supervisor's own words, why it waits; also one that has no pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sparkloom.onnode.now import why
from sparkloom.onnode.now.pods import state
from sparkloom.onnode.now.ranks import Rank as Rank
from sparkloom.onnode.now.ranks import absent, order, row
from sparkloom.site.client import Client


def read(reached: Client, pods: Sequence[Any], planned: Sequence[Mapping[str, Any]], group: str = "") -> list[Rank]:
    """`planned`: rank and node of each, as the record of what was applied has them; `group`: what its objects begin
    with, where another group's ranks of the same number may have events too.
    """
    states = [state(pod) for pod in pods]
    missing = {str(rank["rank"]) for rank in planned} - {one.rank for one in states}
    troubled = missing or not all(one.ready for one in states)
    warnings, nodes = (reached.warnings(), reached.nodes()) if troubled else ({}, {})
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda pod: reached.told(pod.metadata.name) if _runs(pod) else None, pods))
    shown = [
        row(pod, one, said, why.waits(pod, warnings, nodes)) for pod, one, said in zip(pods, states, told, strict=True)
    ]
    shown += [absent(rank, warnings, group) for rank in planned if str(rank["rank"]) in missing]
    return sorted(shown, key=order)


def _runs(pod: Any) -> bool:
    return bool(pod.status.phase == "Running")
