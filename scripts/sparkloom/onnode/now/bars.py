"""The memory of one Spark as the parts of a bar that sum to what it has: for the plan's screen and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Part(NamedTuple):
    """`what`: host, group, own (nobody else may have it), free (others may), guard."""

    what: str
    group: str
    gib: float


def parts(node: Mapping[str, Any]) -> list[Part]:
    """`node` as a fleet's plan tells it: usable_gib, free_gib, guard_gib, gpu, and groups with their gib and turns."""
    usable, here = float(node["usable_gib"]), counted(node["groups"])
    found = [Part("host", "", usable - float(node["free_gib"]))]
    found += [Part("group", str(each["group"]), float(each["gib"] or 0)) for each in here]
    rest = max(0.0, usable - sum(part.gib for part in found))
    if node["gpu"] == ALONE:
        return [*found, Part("own", "", rest)]
    guard = min(rest, float(node["guard_gib"]))
    return [*found, Part("free", "", rest - guard), Part("guard", "", guard)]


ALONE = "one group's"  # what a plan says of a GPU that one group has alone


def counted(groups: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that can be there at once: of a turn the one that takes most, where the first of the turn stands."""
    most: dict[tuple[str, str], Mapping[str, Any]] = {}
    for one in groups:
        turn = str(one.get("turns") or "")
        place = (turn, "" if turn else str(one["group"]))
        if place not in most or float(one["gib"] or 0) > float(most[place]["gib"] or 0):
            most[place] = one
    return list(most.values())


def gpu(groups: int, *, alone: bool) -> str:
    """Who has the GPU of a Spark with so many groups."""
    return "free" if not groups else ALONE if alone else f"{groups} share it"
