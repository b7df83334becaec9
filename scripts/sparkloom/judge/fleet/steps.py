"""From what runs to what a plan says, in waves: what ends, then what starts side by side.

Nothing ends before its place is needed, so that what was there serves until what replaces it is about to load. No two
groups load on one Spark at once: each engine reads what is free there when it begins. Of a turn one is awake: before
another of it starts, the others are put to sleep, and stay set up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkloom.launch.groups import Placed

STAYS = "stays"  # is applied as it is, which changes nothing that runs


@dataclass(frozen=True, slots=True)
class Wave:
    """`idle`: Sparks of those that start on which nothing else of ours is left: their memory must be back.

    `sleep`: who takes turns with those that start and is set up: it is put to sleep, unless it sleeps already.
    """

    stop: tuple[str, ...]
    start: tuple[str, ...]
    idle: tuple[str, ...]
    sleep: tuple[str, ...] = ()


def order(wanted: Sequence[Placed], runs: Mapping[str, Sequence[str]]) -> list[Wave]:
    """`runs`: what has pods now, by name, and on which Sparks; what is in no list any more ends with the first wave."""
    up = {name: frozenset(nodes) for name, nodes in runs.items()}
    staying = [one.name for one in wanted if one.state == STAYS]
    left = [one for one in wanted if one.state != STAYS]
    turns = {one.name: one.turns for one in wanted if one.turns}
    asleep: set[str] = set()
    listed = {one.name for one in wanted}
    ends = {one.name for one in left} | (set(up) - listed)
    waves: list[Wave] = []
    while left or not waves:
        side, taken = list[Placed](), set[str]()
        for one in left:
            if not taken & set(one.nodes):
                taken |= set(one.nodes)
                side.append(one)
        left = [one for one in left if one not in side]
        names = {one.name for one in side}
        late = {node for one in left for node in one.nodes} - taken
        over = {name for name in ends & set(up) if name in names or up[name] & taken}
        # what is of no list any more, and on no Spark that a later wave will empty anyway
        over |= {name for name in set(up) - listed if not up[name] & late}
        up = {name: nodes for name, nodes in up.items() if name not in over}
        begun = {one.turns for one in side if one.turns}
        sleep = [name for name in up if name not in ends and turns.get(name) in begun and name not in asleep]
        asleep = (asleep | set(sleep)) - names
        others = {node for name, nodes in up.items() if name not in asleep for node in nodes}
        stop = tuple(name for name in runs if name in over)
        start = (*(one.name for one in side), *(staying if not waves else ()))
        waves.append(Wave(stop, start, tuple(sorted(taken - others)), tuple(sleep)))
        up |= {one.name: frozenset(one.nodes) for one in side}
        ends -= names
    return waves
