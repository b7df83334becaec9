"""The best packing of a list of groups, or the proof that there is none.

Best by these, in this order: groups that run and would be moved, groups that change and lose their Sparks, ranks that
share a Spark; then the Sparks that stand first in the inventory, as a single profile has always had them.
"""

from __future__ import annotations

from dataclasses import replace

from sparkloom.judge.fleet.problem import Problem, Seat
from sparkloom.judge.fleet.search import Budget, Search


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
        asked = replace(budget, **{what: amount})
        if search.run(asked) is not None:
            return asked
    return budget
