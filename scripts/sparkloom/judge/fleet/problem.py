"""Which groups are to stand on which Sparks, as plain data: whoever packs, and whoever checks a packing, reads this.

Memory is whole MiB, a GPU is something that one group has alone or several share, and a function of the rails is a
number that no two groups of one Spark may both have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class Undecided(Exception):
    """Too many ways: nothing is claimed, neither that it fits nor that it does not."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One Spark: the MiB that groups may share there."""

    name: str
    room: int


@dataclass(frozen=True, slots=True)
class Want:
    """One group: so many Sparks, of those that can hold it; `share` is the MiB of each, None the whole Spark.

    `fixed`: these Sparks in this order. `rails`: its ranks meet, so that it needs a function of the rails on each.
    """

    name: str
    count: int
    able: frozenset[str]
    share: int | None = None
    fixed: tuple[str, ...] = ()
    rails: bool = False


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a group is: rank 0's Spark first, and which function of each rail it has there."""

    nodes: tuple[str, ...]
    vf: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Where a group runs now; `same` where it would go on unchanged if it stayed."""

    seat: Seat
    same: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    spots: tuple[Spot, ...]
    wants: tuple[Want, ...]
    functions: tuple[int, ...] = ()  # of the rails that pods may get; empty where no rail is
    held: Mapping[str, Held] = field(default_factory=dict)

    def replaced(self, *wants: Want) -> Problem:
        return Problem(self.spots, tuple(wants), self.functions, self.held)
