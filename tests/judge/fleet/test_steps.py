"""In which order a rack becomes what a plan says: nothing ends too early, nothing loads beside another load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkloom.judge.fleet.steps import Wave, order
from sparkloom.launch.groups import Placed

SPARKS = [f"spark{number}" for number in range(1, 5)]


def made(name: str, nodes: tuple[str, ...], state: str, turn: str = "") -> Placed:
    return Placed(name, name, nodes, turns=turn, state=state)


def test_four_give_way_to_two_and_one_and_one_at_once() -> None:
    wanted = [
        made("pair", ("spark1", "spark2"), "new"),
        made("one", ("spark3",), "new"),
        made("two", ("spark4",), "new"),
    ]
    assert order(wanted, {"ultra": SPARKS}) == [Wave(("ultra",), ("pair", "one", "two"), tuple(SPARKS))]


def test_one_more_on_a_shared_spark_stops_nobody() -> None:
    wanted = [made("two", ("spark4",), "stays"), made("three", ("spark4",), "new")]
    assert order(wanted, {"two": ["spark4"]}) == [Wave((), ("three", "two"), ())]


def test_two_on_one_spark_load_one_after_the_other() -> None:
    wanted = [made("a", ("spark1",), "new"), made("b", ("spark1",), "new"), made("c", ("spark2",), "new")]
    assert order(wanted, {}) == [
        Wave((), ("a", "c"), ("spark1", "spark2")),
        Wave((), ("b",), ()),
    ]


def test_a_group_serves_until_its_place_is_needed() -> None:
    """`old` stands where only the second wave loads; `gone` stands in nobody's way and ends at once."""
    wanted = [
        made("a", ("spark1",), "new"), made("b", ("spark1", "spark2"), "new"), made("keeps", ("spark4",), "stays")
    ]  # fmt: skip
    runs = {"old": ["spark2"], "gone": ["spark3"], "keeps": ["spark4"]}
    assert order(wanted, runs) == [
        Wave(("gone",), ("a", "keeps"), ("spark1",)),
        Wave(("old",), ("b",), ("spark2",)),
    ]


def test_who_moves_makes_room_and_comes_back() -> None:
    wanted = [made("big", ("spark1", "spark2"), "new"), made("small", ("spark3",), "moves")]
    assert order(wanted, {"small": ["spark1"]}) == [Wave(("small",), ("big", "small"), ("spark1", "spark2", "spark3"))]


def test_of_a_turn_one_starts_after_the_other_and_the_last_is_awake() -> None:
    wanted = [made(name, ("spark1", "spark2"), "new", "t") for name in "abc"]
    both = ("spark1", "spark2")
    assert order(wanted, {}) == [
        Wave((), ("a",), both), Wave((), ("b",), both, ("a",)), Wave((), ("c",), both, ("b",))
    ]  # fmt: skip


def test_who_stays_sleeps_for_the_one_of_its_turn_that_starts() -> None:
    wanted = [made("a", ("spark1",), "stays", "t"), made("b", ("spark1",), "changes", "t")]
    assert order(wanted, {"a": ["spark1"], "b": ["spark1"]}) == [Wave(("b",), ("b", "a"), ("spark1",), ("a",))]
    stays = [made("a", ("spark1",), "stays", "t"), made("b", ("spark1",), "stays", "t")]
    assert order(stays, {"a": ["spark1"], "b": ["spark1"]}) == [Wave((), ("a", "b"), ())]


def test_beside_a_turn_on_a_share_somebody_else_is_left_alone() -> None:
    wanted = [
        made("a", ("spark1",), "stays", "t"),
        made("b", ("spark1",), "new", "t"),
        made("c", ("spark1",), "stays"),
    ]
    assert order(wanted, {"a": ["spark1"], "c": ["spark1"]}) == [Wave((), ("b", "a", "c"), (), ("a",))]


def test_nothing_listed_ends_all() -> None:
    assert order([], {"old": ["spark1"]}) == [Wave(("old",), (), ())]


nodes = st.lists(st.sampled_from(SPARKS), min_size=1, max_size=4, unique=True).map(tuple)
states = st.sampled_from(["new", "stays", "moves", "changes"])


turns = st.sampled_from(["", "", "t", "u"])


@given(st.lists(st.tuples(nodes, states, turns), max_size=6), st.lists(nodes, max_size=4), nodes)
def test_any_step(
    groups: list[tuple[tuple[str, ...], str, str]], gone: list[tuple[str, ...]], was: tuple[str, ...]
) -> None:
    place = {turn: at for at, _, turn in groups if turn}
    wanted = [made(f"g{number}", place.get(turn, at), state, turn) for number, (at, state, turn) in enumerate(groups)]
    runs: dict[str, tuple[str, ...]] = {f"gone{number}": at for number, at in enumerate(gone)}
    runs |= {one.name: one.nodes if one.state == "stays" else was for one in wanted if one.state != "new"}
    waves = order(wanted, runs)
    started = [name for wave in waves for name in wave.start]
    assert sorted(started) == sorted(one.name for one in wanted), "each starts once"
    stopped = [name for wave in waves for name in wave.stop]
    assert sorted(stopped) == sorted(set(runs) - {one.name for one in wanted if one.state == "stays"}), "each ends once"
    by_name = {one.name: one for one in wanted}
    up, asleep = dict(runs), set[str]()
    for wave in waves:
        for name in wave.stop:
            del up[name]
        assert not set(wave.sleep) & (asleep | set(wave.stop)) and set(wave.sleep) <= set(up)
        asleep |= set(wave.sleep)
        loading = [by_name[name] for name in wave.start if by_name[name].state != "stays"]
        taken = [node for one in loading for node in one.nodes]
        assert len(taken) == len(set(taken)), "no two load on one Spark"
        for one in loading:
            there = {name for name, at in up.items() if set(at) & set(one.nodes)}
            assert all((name in by_name and by_name[name].state == "stays") or name in started for name in there)
            assert not any(name.startswith("gone") for name in there), "what is gone is gone where others load"
            mates = {name for name in there if one.turns and name in by_name and by_name[name].turns == one.turns}
            assert mates <= asleep, "who takes turns with it sleeps by then"
            up[one.name] = one.nodes
            asleep -= {one.name}
        busy = {node for name, at in up.items() if name not in (*wave.start, *asleep) for node in at}
        assert not busy & set(wave.idle)
    for turn in place:
        new = [name for name in started if by_name[name].turns == turn and by_name[name].state != "stays"]
        if new:
            assert {one.name for one in wanted if one.turns == turn} - asleep == {new[-1]}, (
                "the last one started is awake"
            )
