"""The best packing of a list of groups, or the proof that there is none.

Best by these, in this order: groups that run and would be moved, groups that change and lose their Sparks, ranks that
share a Spark; then the Sparks that stand first in the inventory, as a single profile has always had them.

The search is exact and deterministic: depth first over the groups, the hardest first. Sparks that are alike are taken
once, what was found to lead nowhere is not entered again, and counting prunes: empty Sparks, and the sums of shares
that a Spark could still be filled with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkloom.judge.fleet.problem import Place, Problem, Seat, Undecided, Want

ENDLESS = 10**6
PATIENCE = 20_000  # steps of one search: some seconds; lists of people's come to a few hundred


def fits(problem: Problem) -> bool:
    """Whether there is any packing, wherever groups run now."""
    return Search(replace(problem, held={})).run(Budget()) is not None


def solve(problem: Problem) -> dict[str, Seat] | None:
    """The best packing; None where there is none."""
    if not fits(problem):
        return None
    search = Search(problem)
    held = [one for place in problem.places for one in place.held]
    same = sum(one.same for one in held)
    seats, spots = sum(place.want.count for place in problem.places), len(problem.spots)
    budget = _least(search, Budget(), "moves", range(same))
    budget = _least(search, budget, "shifts", range(len(held) - same))
    budget = _least(search, budget, "sharing", range(max(0, seats - spots), seats))
    return search.run(budget)


def _least(search: Search, budget: Budget, what: str, tried: range) -> Budget:
    """The budget with as little of one thing as will do, everything dearer as it is."""
    for amount in tried:
        asked = budget._replace(**{what: amount})
        if search.run(asked) is not None:
            return asked
    return budget


@dataclass(frozen=True, slots=True)
class _State:
    """One Spark on the way: what is left to share, how many ranks are there, whether one has it alone."""

    left: int
    ranks: int = 0
    alone: bool = False
    functions: frozenset[int] = frozenset()


class Budget(NamedTuple):
    """What a search may still spend, the dearest first."""

    moves: int = ENDLESS
    shifts: int = ENDLESS
    sharing: int = ENDLESS

    def less(self, *spent: int) -> Budget:
        return Budget(*(ENDLESS if have == ENDLESS else have - cost for have, cost in zip(self, spent, strict=True)))


class Search:
    """Of one problem; `run` says what may be spent."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.index = {spot.name: number for number, spot in enumerate(problem.spots)}
        order = {place.names: number for number, place in enumerate(problem.places)}
        self.places = sorted(problem.places, key=lambda place: (*self._hardness(place), order[place.names]))
        self.wants = [place.want for place in self.places]
        self.classes = [self._classes(self.places[depth:]) for depth in range(len(self.wants) + 1)]
        self.sums = [self._sums(self.wants[depth:]) for depth in range(len(self.wants) + 1)]
        self.filled: list[dict[int, int]] = [{} for _ in self.sums]
        self.dead: set[tuple[object, ...]] = set()
        self.steps = 0

    def _sums(self, rest: Sequence[Want]) -> int:
        """All sums of their shares, each as one bit."""
        bits, width = 1, (1 << (max((spot.room for spot in self.problem.spots), default=0) + 1)) - 1
        for want in rest:
            bits |= (bits << want.share) & width if want.share is not None else 0
        return bits

    @staticmethod
    def _hardness(place: Place) -> tuple[int, ...]:
        want, same = place.want, any(held.same for held in place.held)
        return not want.fixed, not same, not place.held, want.share is not None, -want.count, -(want.share or 0)

    def _classes(self, rest: Sequence[Place]) -> list[int]:
        """Sparks of one class are alike to all groups that are still to be placed."""
        known: dict[tuple[object, ...], int] = {}
        return [
            known.setdefault(tuple(self._bound(place, spot.name) for place in rest), len(known))
            for spot in self.problem.spots
        ]

    @staticmethod
    def _bound(place: Place, node: str) -> tuple[object, ...]:
        known = (place.want.fixed, *(held.seat.nodes for held in place.held))
        return node in place.want.able, *(nodes.index(node) if node in nodes else -1 for nodes in known)

    def run(self, budget: Budget) -> dict[str, Seat] | None:
        self.dead.clear()
        self.steps = 0
        return self._from(0, tuple(_State(spot.room) for spot in self.problem.spots), budget)

    def _from(self, depth: int, states: tuple[_State, ...], budget: Budget) -> dict[str, Seat] | None:
        if depth == len(self.wants):
            return {}
        key = self._key(depth, states, budget)
        if key in self.dead or self._hopeless(depth, states, budget):
            return None
        self.steps += 1
        if self.steps > PATIENCE:
            raise Undecided(f"{len(self.problem.wants)} groups on {len(states)} Sparks")
        place = self.places[depth]
        for seat in self._seats(depth, place, states):
            left = budget.less(*self._cost(place, seat, states))
            if min(left) < 0:
                continue
            rest = self._from(depth + 1, self._taken(place.want, seat, states), left)
            if rest is not None:
                return dict.fromkeys(place.names, seat) | rest
        self.dead.add(key)
        return None

    def _key(self, depth: int, states: tuple[_State, ...], budget: Budget) -> tuple[object, ...]:
        alike = sorted(
            (kind, state.left, state.ranks, state.alone, tuple(sorted(state.functions)))
            for kind, state in zip(self.classes[depth], states, strict=True)
        )
        return depth, tuple(alike), budget

    def _hopeless(self, depth: int, states: tuple[_State, ...], budget: Budget) -> bool:
        """Counting alone says no: more whole Sparks than are empty, or more memory than is left beside them."""
        rest = self.wants[depth:]
        whole = sum(want.count for want in rest if want.share is None)
        empty = sorted((state.left for state in states if not state.ranks), reverse=True)
        if whole > len(empty) or sum(want.count for want in rest) > len(empty) + budget.sharing:
            return True
        asked = sum(want.count * want.share for want in rest if want.share is not None)
        used = sum(self._filled(depth, state.left) for state in states if state.ranks and not state.alone)
        return asked > used + sum(self._filled(depth, left) for left in empty[: len(empty) - whole])

    def _filled(self, depth: int, left: int) -> int:
        """The most that the groups still to be placed can make of what a Spark has left, each of them once."""
        known = self.filled[depth].get(left)
        if known is None:
            known = (self.sums[depth] & ((1 << (left + 1)) - 1)).bit_length() - 1
            self.filled[depth][left] = known
        return known

    def _seats(self, depth: int, place: Place, states: tuple[_State, ...]) -> Iterator[Seat]:
        """Every way that differs, where it runs now first."""
        stay = [held.seat for held in place.held if self._possible(place.want, held.seat, states)]
        yield from dict.fromkeys(stay)
        for nodes in self._sets(depth, place, states):
            for function in self._free(depth, nodes, states):
                seat = Seat(nodes, function)
                if seat not in stay:
                    yield seat

    def _possible(self, want: Want, seat: Seat, states: tuple[_State, ...]) -> bool:
        """Whether the seat of now is one that this group may have."""
        if len(seat.nodes) != want.count or (want.fixed and want.fixed != seat.nodes):
            return False
        if any(node not in self.index or not self._holds(want, node, states) for node in seat.nodes):
            return False
        if not want.rails:
            return seat.vf is None
        return seat.vf in self.problem.functions and not self._used(seat.vf, seat.nodes, states)

    def _used(self, function: int, nodes: Sequence[str], states: tuple[_State, ...]) -> bool:
        return any(function in states[self.index[node]].functions for node in nodes)

    def _holds(self, want: Want, node: str, states: tuple[_State, ...]) -> bool:
        state = states[self.index[node]]
        if node not in want.able or state.alone:
            return False
        return not state.ranks if want.share is None else state.left >= want.share

    def _sets(self, depth: int, place: Place, states: tuple[_State, ...]) -> Iterator[tuple[str, ...]]:
        want = place.want
        if want.fixed:
            if all(self._holds(want, node, states) for node in want.fixed):
                yield want.fixed
            return
        mine = {node for held in place.held for node in held.seat.nodes}
        open_ = [spot.name for spot in self.problem.spots if self._holds(want, spot.name, states)]
        ordered = sorted(open_, key=lambda node: (node not in mine, self.index[node]))
        kinds = [(node, (self.classes[depth][self.index[node]], states[self.index[node]])) for node in ordered]
        for chosen in self._picks(kinds, want.count):
            yield tuple(sorted(chosen, key=self.index.__getitem__))

    def _picks(
        self, nodes: Sequence[tuple[str, object]], count: int, passed: frozenset[object] = frozenset()
    ) -> Iterator[tuple[str, ...]]:
        """Sets of `count`, the first ones first; of Sparks that are alike no later one is taken without the earlier."""
        if count == 0:
            yield ()
            return
        for place in range(len(nodes) - count + 1):
            node, kind = nodes[place]
            if kind not in passed:
                for rest in self._picks(nodes[place + 1 :], count - 1, passed):
                    yield (node, *rest)
                passed |= {kind}

    def _free(self, depth: int, nodes: Sequence[str], states: tuple[_State, ...]) -> Iterator[int | None]:
        """Functions that none of these Sparks has given away; of those that nobody has or had the first only."""
        if not self.wants[depth].rails:
            yield None
            return
        had = {held.seat.vf for place in self.places[depth:] for held in place.held}
        known = had | {vf for state in states for vf in state.functions}
        fresh = False
        mine = {held.seat.vf for held in self.places[depth].held}
        given = self.problem.functions
        for function in sorted(given, key=lambda vf: (vf not in mine, given.index(vf))):
            if function not in known:
                if fresh:
                    continue
                fresh = True
            if not self._used(function, nodes, states):
                yield function

    def _cost(self, place: Place, seat: Seat, states: tuple[_State, ...]) -> tuple[int, int, int]:
        moved = sum(held.same and seat != held.seat for held in place.held)
        old = [held.seat.nodes for held in place.held if not held.same]
        lost = sum(len(nodes) == place.want.count and set(nodes) != set(seat.nodes) for nodes in old)
        return moved, lost, sum(1 for node in seat.nodes if states[self.index[node]].ranks)

    def _taken(self, want: Want, seat: Seat, states: tuple[_State, ...]) -> tuple[_State, ...]:
        after = list(states)
        for node in seat.nodes:
            state = states[self.index[node]]
            left = 0 if want.share is None else state.left - want.share
            functions = state.functions if seat.vf is None else state.functions | {seat.vf}
            after[self.index[node]] = _State(left, state.ranks + 1, want.share is None, functions)
        return tuple(after)
