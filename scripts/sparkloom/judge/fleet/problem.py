"""Which groups are to stand on which Sparks, as plain data: whoever packs, and whoever checks a packing, reads this.

Memory is whole MiB, a GPU is something that one group has alone or several share, and a function of the rails is a
number that no two groups of one Spark may both have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar


class HasTurn(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def turn(self) -> str: ...


G = TypeVar("G", bound=HasTurn)


def by_turn(groups: Iterable[G]) -> list[tuple[G, ...]]:
    """In the list's order: each group, or all of one turn where its first is."""
    together: dict[tuple[str, str], list[G]] = {}
    for group in groups:
        together.setdefault((group.turn, "" if group.turn else group.name), []).append(group)
    return [tuple(those) for those in together.values()]


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
    `turn`: whoever has the same one has the same seat, where one of them runs at a time.
    """

    name: str
    count: int
    able: frozenset[str]
    share: int | None = None
    fixed: tuple[str, ...] = ()
    rails: bool = False
    turn: str = ""


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
class Place:
    """What a seat is looked for: one group, or all of one turn. `want` is what is asked of the seat by all of them."""

    want: Want
    names: tuple[str, ...]
    held: tuple[Held, ...]

    @classmethod
    def of(cls, wants: Sequence[Want], held: Mapping[str, Held]) -> Place:
        """A Spark that holds each of them, by itself; none where they ask for seats that cannot be the same."""
        fixed = {want.fixed for want in wants if want.fixed}
        alike = len({want.count for want in wants}) == 1 and len(fixed) <= 1
        shares = [want.share for want in wants]
        whole = replace(
            wants[0],
            able=frozenset.intersection(*(want.able for want in wants)) if alike else frozenset(),
            share=None if None in shares else max(share for share in shares if share is not None),
            fixed=next(iter(fixed), ()),
        )
        return cls(whole, tuple(want.name for want in wants), tuple(held[w.name] for w in wants if w.name in held))


@dataclass(frozen=True, slots=True)
class Problem:
    spots: tuple[Spot, ...]
    wants: tuple[Want, ...]
    functions: tuple[int, ...] = ()  # of the rails that pods may get; empty where no rail is
    held: Mapping[str, Held] = field(default_factory=dict)

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(Place.of(wants, self.held) for wants in by_turn(self.wants))
