"""What packings there are, by trying them all: no idea of the product's search is in here, only what a packing is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product

from sparkloom.judge.fleet.problem import Problem, Seat, Want

Cost = tuple[int, int, int]  # groups moved, changed groups that lost their Sparks, ranks that share one
# Of each Spark: what is used of its memory, whether one has it alone, ranks there, functions given away.
State = tuple[tuple[int, bool, int, tuple[int, ...]], ...]


def told(problem: Problem) -> str:
    """A problem as a person would write it down."""
    lines = [f"{spot.name}: {spot.room}" for spot in problem.spots]
    for want in problem.wants:
        share = "alone" if want.share is None else f"{want.share} of each"
        missing = {spot.name for spot in problem.spots} - want.able
        parts = [f"{want.name}: {want.count} Sparks, {share}"]
        parts += [f"not {', '.join(sorted(missing))}"] if missing else []
        parts += [f"on {', '.join(want.fixed)}"] if want.fixed else []
        parts += [f"in turn {want.turn}"] if want.turn else []
        if held := problem.held.get(want.name):
            parts.append(f"{'runs' if held.same else 'another ran'} on {', '.join(held.seat.nodes)} vf {held.seat.vf}")
        lines.append("; ".join(parts))
    return "\n".join([*lines, f"functions {problem.functions}"])


def broken(problem: Problem, seats: Mapping[str, Seat]) -> list[str]:
    """Every limit that a packing does not respect."""
    said = []
    rooms = {spot.name: spot.room for spot in problem.spots}
    for want in problem.wants:
        seat = seats[want.name]
        if len(set(seat.nodes)) != want.count or len(seat.nodes) != want.count:
            said.append(f"{want.name}: {seat.nodes} are not {want.count} Sparks")
        if not set(seat.nodes) <= want.able:
            said.append(f"{want.name}: on a Spark that does not hold it")
        if want.fixed and seat.nodes != want.fixed:
            said.append(f"{want.name}: not where it was told to be")
        if (seat.vf in problem.functions) != want.rails or (seat.vf is not None) != want.rails:
            said.append(f"{want.name}: function {seat.vf}")
        said += [
            f"{want.name} and {other.name}: apart, and they take turns"
            for other in problem.wants
            if want.turn and other.turn == want.turn and seats[other.name] != seat
        ]
    # Whoever is awake: every way in which one group of each turn is, beside all that take none.
    for awake in product(*turns(problem)):
        said += _crowded(rooms, [(want, seats[want.name]) for want in awake])
    return list(dict.fromkeys(said))


def turns(problem: Problem) -> list[list[Want]]:
    """Who takes turns with whom; who does with nobody is a turn alone."""
    named = dict.fromkeys(want.turn for want in problem.wants if want.turn)
    return [[want for want in problem.wants if want.turn == name] for name in named] + [
        [want] for want in problem.wants if not want.turn
    ]


def _crowded(rooms: Mapping[str, int], awake: list[tuple[Want, Seat]]) -> list[str]:
    said = []
    for node, room in rooms.items():
        here = [(want, seat) for want, seat in awake if node in seat.nodes]
        if len(here) > 1 and any(want.share is None for want, _ in here):
            said.append(f"{node}: one has it alone, and another is there")
        if sum(want.share or 0 for want, _ in here) > room:
            said.append(f"{node}: more memory than there is")
        given = [seat.vf for _, seat in here if seat.vf is not None]
        if len(set(given)) < len(given):
            said.append(f"{node}: one function twice")
    return said


def cost(problem: Problem, seats: Mapping[str, Seat]) -> Cost:
    moved = lost = 0
    for want in problem.wants:
        held, seat = problem.held.get(want.name), seats[want.name]
        if held and held.same:
            moved += seat != held.seat
        elif held and len(held.seat.nodes) == want.count:
            lost += set(seat.nodes) != set(held.seat.nodes)
    ranks = [node for one in turns(problem) for node in seats[one[0].name].nodes]
    return moved, lost, len(ranks) - len(set(ranks))


def cheapest(problem: Problem) -> Cost | None:
    """Over every combination of seats; None where none respects all limits. For few groups on few Sparks."""
    ways = [list(seats(problem, want)) for want in problem.wants]
    names = [want.name for want in problem.wants]
    tried = (dict(zip(names, chosen, strict=True)) for chosen in product(*ways))
    return min((cost(problem, chosen) for chosen in tried if not broken(problem, chosen)), default=None)


def seats(problem: Problem, want: Want) -> Iterator[Seat]:
    """All seats of one group by itself; those of now in their own order of ranks, too."""
    sets = [want.fixed] if want.fixed else list(combinations([spot.name for spot in problem.spots], want.count))
    held = problem.held.get(want.name)
    if held and not want.fixed and held.seat.nodes not in sets:
        sets.append(held.seat.nodes)
    for nodes in sets:
        for function in problem.functions if want.rails else (None,):
            yield Seat(nodes, function)


def possible(problem: Problem, kept: Mapping[str, Seat] | None = None) -> bool:
    """Whether there is any packing in which the groups of `kept` are where it says.

    Group after group, every state that the Sparks can be in by then. Sparks of one size that nobody names are alike.
    """
    alike = not kept and len({spot.room for spot in problem.spots}) < 2
    alike = alike and all(not want.fixed and len(want.able) == len(problem.spots) for want in problem.wants)
    states: set[State] = {tuple((0, False, 0, ()) for _ in problem.spots)}
    for mates in turns(problem):
        told = {kept[want.name] for want in mates if kept and want.name in kept}
        ways = [seat for seat in dict.fromkeys(seats_of(problem, mates)) if told <= {seat}]
        states = {after for state in states for seat in ways if (after := _all(problem, mates, seat, state))}
        if alike:
            states = {tuple(sorted(state)) for state in states}
    return bool(states)


def seats_of(problem: Problem, mates: list[Want]) -> Iterator[Seat]:
    return (seat for want in mates for seat in seats(problem, want))


def _all(problem: Problem, mates: list[Want], seat: Seat, state: State) -> State | None:
    """Each of them fits there by itself; what is left is what the one leaves that takes most."""
    each = [after for want in mates if (after := _with(problem, want, seat, state))]
    if len(each) < len(mates):
        return None
    spots = zip(*each, strict=True)
    return tuple((max(s[0] for s in spot), any(s[1] for s in spot), spot[0][2], spot[0][3]) for spot in spots)


def _with(problem: Problem, want: Want, seat: Seat, state: State) -> State | None:
    after = []
    if len(seat.nodes) != want.count or not set(seat.nodes) <= want.able or (want.fixed and want.fixed != seat.nodes):
        return None
    if want.rails and seat.vf not in problem.functions:
        return None
    for spot, (used, alone, ranks, given) in zip(problem.spots, state, strict=True):
        if spot.name not in seat.nodes:
            after.append((used, alone, ranks, given))
            continue
        if alone or (want.share is None and ranks) or used + (want.share or 0) > spot.room or seat.vf in given:
            return None
        functions = given if seat.vf is None else tuple(sorted((*given, seat.vf)))
        after.append((used + (want.share or 0), want.share is None, ranks + 1, functions))
    return tuple(after)
