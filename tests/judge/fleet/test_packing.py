"""The search against one that tries everything: limits kept, refusals true, no movement that is not needed."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

from sparkloom.judge.fleet import packing
from sparkloom.judge.fleet.problem import Held, Problem, Seat, Spot, Undecided, Want
from tests.judge.fleet import brute
from tests.later import thrown

THOROUGH = settings(max_examples=thrown(400))
ROOM = 100
LETTERS = "abcdefghijklmn"


@st.composite
def problems(draw: st.DrawFn, most_spots: int = 8, most_wants: int = 6, alike: bool = False) -> Problem:
    count = draw(st.integers(1, most_spots))
    names = [f"spark{number}" for number in range(1, count + 1)]
    rooms = st.just(ROOM) if alike else st.sampled_from([ROOM, ROOM, ROOM, 90])
    spots = tuple(Spot(name, draw(rooms)) for name in names)
    functions = tuple(range(draw(st.integers(0, 2))))
    letters = LETTERS[: draw(st.integers(0, most_wants))]
    return Problem(spots, draw(turned([draw(wants(letter, names, alike)) for letter in letters])), functions)


@st.composite
def turned(draw: st.DrawFn, asked: list[Want]) -> tuple[Want, ...]:
    """Some of them in turns: mostly of one size, as the inventory has it; the product must not depend on that."""
    for turn in "uv"[: draw(st.sampled_from([0, 0, 1, 1, 2]))]:
        free = [number for number, want in enumerate(asked) if not want.turn]
        mates = draw(st.permutations(free))[: draw(st.integers(1, 3))]
        for number in mates:
            first = asked[mates[0]]
            size = {"count": first.count, "share": first.share, "rails": first.rails} if draw(st.integers(0, 5)) else {}
            fixed = () if size else asked[number].fixed
            asked[number] = replace(asked[number], turn=turn, fixed=fixed, **size)
    return tuple(asked)


@st.composite
def wants(draw: st.DrawFn, name: str, nodes: list[str], alike: bool = False) -> Want:
    count = min(len(nodes), draw(st.sampled_from([1, 1, 1, 2, 2, 3, 4, 8])))
    share = draw(st.sampled_from([None, 25, 30, 40, 50, 60, 95]))
    fixed: tuple[str, ...] = ()
    able = frozenset(nodes)
    if not alike:
        fixed = tuple(draw(st.permutations(nodes))[:count]) if draw(st.integers(0, 7)) == 7 else ()
        able -= {node for node in nodes if draw(st.integers(0, 9)) == 9}
    return Want(name, count, able, share, fixed, count > 1)


@THOROUGH
@given(problems())
def test_a_packing_respects_every_limit_and_a_refusal_is_true(problem: Problem) -> None:
    note(brute.told(problem))
    seats = packing.solve(problem)
    event("refused" if seats is None else "packed")
    if seats is None:
        assert not brute.possible(problem)
    else:
        assert not brute.broken(problem, seats)
        assert packing.solve(problem) == seats, "the same list gives the same packing"


@THOROUGH
@given(problems(alike=True, most_wants=9))
def test_so_do_longer_lists_on_sparks_that_are_alike(problem: Problem) -> None:
    note(brute.told(problem))
    seats = packing.solve(problem)
    if seats is None:
        assert not brute.possible(problem)
    else:
        assert not brute.broken(problem, seats)


@st.composite
def scattered(draw: st.DrawFn, most_spots: int, most_wants: int) -> Problem:
    """Small groups that could share, and may stand apart: who then wants a Spark alone may need one to move."""
    names = [f"spark{number}" for number in range(1, draw(st.integers(2, most_spots)) + 1)]
    letters = LETTERS[: draw(st.integers(1, most_wants))]
    asked = [Want(letter, 1, frozenset(names), draw(st.sampled_from([25, 30, 40, 50]))) for letter in letters]
    return Problem(tuple(Spot(name, ROOM) for name in names), tuple(asked), (0,))


@st.composite
def changes(draw: st.DrawFn, most_spots: int, most_wants: int) -> Problem:
    """Groups that run anywhere they can, and then one group added, taken out or changed: the new list beside them."""
    before = draw(st.one_of(problems(most_spots, most_wants), scattered(most_spots, most_wants)))
    nodes = [spot.name for spot in before.spots]
    held: dict[str, Held] = {}
    placed: list[Want] = []
    for want in before.wants:
        now = replace(before, wants=(*placed, want))
        seats = {name: one.seat for name, one in held.items()}
        free = [seat for seat in brute.seats(before, want) if not brute.broken(now, {**seats, want.name: seat})]
        if free:
            placed.append(want)
            held[want.name] = Held(draw(st.sampled_from(free)))
    if draw(st.booleans()):  # who stood apart before is to take turns now
        placed = list(draw(turned([replace(want, turn="") for want in placed])))
    what = draw(st.sampled_from(["add", "add", "remove", "change"]))
    if what != "add" and placed:
        number = draw(st.integers(0, len(placed) - 1))
        gone = placed.pop(number)
        if what == "change":
            placed.insert(number, draw(wants(gone.name, nodes)))
            held[gone.name] = replace(held[gone.name], same=False)
        else:
            del held[gone.name]
    elif placed and draw(st.integers(0, 2)) == 0:
        beside = draw(st.sampled_from(placed))  # which may have run elsewhere than those it takes turns with now
        placed[placed.index(beside)] = replace(beside, turn="u")
        placed.append(replace(beside, name="new", turn="u"))
    elif draw(st.booleans()):
        placed.append(draw(wants("new", nodes)))
    else:
        count = draw(st.integers(1, len(nodes)))
        placed.append(Want("new", count, frozenset(nodes), rails=count > 1))
    return Problem(before.spots, tuple(placed), before.functions, held)


@THOROUGH
@given(changes(4, 3))
def test_no_group_is_moved_that_need_not_move(problem: Problem) -> None:
    note(brute.told(problem))
    seats = packing.solve(problem)
    cheapest = brute.cheapest(problem)
    assert (seats is None) == (cheapest is None)
    event(f"groups moved: {cheapest[0]}" if cheapest else "refused")
    if seats is not None:
        assert brute.cost(problem, seats) == cheapest


def test_every_way_to_stand_on_three_sparks_when_somebody_wants_some_alone() -> None:
    """Three small groups wherever they can be, of every size: as many move as must, from none to two."""
    nodes = [f"spark{number}" for number in (1, 2, 3)]
    spots = tuple(Spot(node, ROOM) for node in nodes)
    moved: Counter[int | None] = Counter()
    for shares in combinations_with_replacement((25, 40, 60), 3):
        small = [Want(name, 1, frozenset(nodes), share) for name, share in zip("abc", shares, strict=True)]
        for where in product(nodes, repeat=3):
            seats = {name: Seat((node,)) for name, node in zip("abc", where, strict=True)}
            if brute.broken(Problem(spots, tuple(small), (0,)), seats):
                continue
            for count in (1, 2):
                new = Want("new", count, frozenset(nodes), rails=count > 1)
                held = {name: Held(seat) for name, seat in seats.items()}
                problem = Problem(spots, (*small, new), (0,), held)
                found, cheapest = packing.solve(problem), brute.cheapest(problem)
                assert (brute.cost(problem, found) if found else None) == cheapest, brute.told(problem)
                moved[cheapest[0] if cheapest else None] += 1
    assert set(moved) == {0, 1, 2, None} and min(moved.values()) >= 10, moved


@THOROUGH
@given(changes(8, 5))
def test_where_all_can_stay_all_stay(problem: Problem) -> None:
    note(brute.told(problem))
    kept = {name: held.seat for name, held in problem.held.items() if held.same}
    seats = packing.solve(problem)
    if seats is None:
        assert not brute.possible(problem)
    elif brute.possible(problem, kept):
        event("all stay")
        assert {name: seats[name] for name in kept} == kept
    else:
        event("some must move")
        assert any(seats[name] != seat for name, seat in kept.items())


def four(*wants: Want, functions: tuple[int, ...] = (0,), **held: Seat) -> dict[str, Seat] | None:
    spots = tuple(Spot(f"spark{number}", ROOM) for number in range(1, 5))
    return packing.solve(Problem(spots, wants, functions, {name: Held(seat) for name, seat in held.items()}))


ALL = frozenset(f"spark{number}" for number in range(1, 5))


def whole(name: str, count: int) -> Want:
    return Want(name, count, ALL, rails=count > 1)


def part(name: str, share: int, count: int = 1) -> Want:
    return Want(name, count, ALL, share, rails=count > 1)


def test_one_profile_has_the_first_sparks_as_ever() -> None:
    assert four(whole("a", 2)) == {"a": Seat(("spark1", "spark2"), 0)}


def test_small_ones_share_only_when_they_must() -> None:
    apart = four(whole("a", 2), part("b", 40), part("c", 40))
    assert apart and apart["b"].nodes != apart["c"].nodes
    together = four(whole("a", 2), whole("d", 1), part("b", 40), part("c", 40))
    assert together and together["b"].nodes == together["c"].nodes


def test_groups_of_several_that_share_have_functions_of_their_own() -> None:
    assert four(part("a", 40, 4), part("b", 40, 4)) is None
    both = four(part("a", 40, 4), part("b", 40, 4), functions=(0, 2))
    assert both and {both["a"].vf, both["b"].vf} == {0, 2}


def test_who_takes_turns_takes_one_place_and_one_function() -> None:
    both = four(replace(whole("a", 4), turn="t"), replace(whole("b", 4), turn="t"))
    assert both and both["a"] == both["b"] == Seat(tuple(sorted(ALL)), 0)
    shared = four(*(replace(part(name, 60), turn="t") for name in "ab"), *(part(name, 40) for name in "cdef"))
    assert shared and shared["a"] == shared["b"]
    assert four(replace(whole("a", 4), turn="t"), replace(whole("b", 4), turn="t"), whole("c", 1)) is None


def test_a_group_that_joins_a_turn_comes_to_where_the_other_runs() -> None:
    joined = four(replace(whole("new", 1), turn="t"), replace(whole("a", 1), turn="t"), a=Seat(("spark3",)))
    assert joined == {"new": Seat(("spark3",)), "a": Seat(("spark3",))}
    apart = {"a": Seat(("spark2",)), "b": Seat(("spark4",))}
    moved = four(replace(whole("a", 1), turn="t"), replace(whole("b", 1), turn="t"), **apart)
    assert moved and moved["a"] == moved["b"] and moved["a"] in apart.values()


def test_who_cannot_have_one_place_fits_nowhere() -> None:
    on = [replace(whole(name, 1), turn="t", fixed=(f"spark{number}",)) for number, name in enumerate("ab", 1)]
    assert four(*on) is None
    assert four(replace(whole("a", 1), turn="t"), replace(whole("b", 2), turn="t")) is None


def test_a_move_is_made_only_to_make_room_and_only_one() -> None:
    runs = {"b": Seat(("spark1",)), "c": Seat(("spark3",))}
    stays = four(part("b", 40), part("c", 40), whole("a", 2), **runs)
    assert stays and {name: stays[name] for name in runs} == runs
    moved = four(part("b", 40), part("c", 40), whole("a", 3), **runs)
    assert moved and sum(moved[name] != seat for name, seat in runs.items()) == 1


@pytest.mark.parametrize("shares", [(20, 25, 30), (31, 33, 37), (17, 23, 41)], ids=str)
def test_eight_sparks_full_of_small_groups_take_less_than_a_second(shares: tuple[int, ...]) -> None:
    """CPU of this process: other people's work on the machine is not counted."""
    names = [f"spark{number}" for number in range(8)]
    spots = tuple(Spot(name, 87) for name in names)
    asked = [Want(f"g{number}", 1, frozenset(names), shares[number % 3]) for number in range(22)]
    asked += [Want("pair", 2, frozenset(names), rails=True)]
    begun = time.process_time()
    packing.solve(Problem(spots, tuple(asked), (0,)))
    assert time.process_time() - begun < 1


def test_what_cannot_be_looked_through_is_said_and_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PATIENCE", 1)
    with pytest.raises(Undecided, match="2 groups on 4 Sparks"):
        four(whole("a", 1), whole("b", 1))
