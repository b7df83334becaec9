"""No order of requests, looks, failures and restarts ends a group in use, has two mates awake, or forgets who waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sparkloom.onnode.waker.groups import FRESH, PLACE, Groups
from sparkloom.onnode.waker.refusal import Refusal
from sparkloom.onnode.waker.state import HOLD, Group, Seen, Use
from tests.later import thrown

IDLE, LIMIT, LOAD = 300.0, 600.0, 60.0


def group(name: str, turn: str = "") -> Group:
    return Group(
        name, name, name, f"{name}.site", (f"{name}-rank0", f"{name}-rank1"), IDLE, turn, LOAD, LIMIT,
    )  # fmt: skip


LISTED = (group("day", "desk"), group("night", "desk"), group("alone"))


@dataclass
class There:
    """A group as the cluster has it."""

    up: int = 0
    pods: int = 0
    ready: bool = False
    down: str = ""
    asked: int = 0  # requests that the router leads to it directly
    around: bool = False  # somebody's connection that no router knows of
    stopped: str = ""
    total: int = 0
    last: float = float("-inf")  # when a request last was there

    @property
    def there(self) -> bool:
        return bool(self.up or self.pods)


@dataclass
class World:
    now: float = 1000.0
    there: dict[str, There] = field(default_factory=lambda: {one.name: There() for one in LISTED})
    blind: bool = False
    half: bool = False  # the API takes the first of two changes, and not the second


class Site:
    """The program's logic over a cluster that does what it is told, step by step."""

    def __init__(self) -> None:
        self.world = World()
        self.begin()

    def begin(self) -> None:
        self.groups = Groups(lambda: self.world.now)
        self.groups.replace(LISTED)
        self.counted: dict[str, int] = {}

    def look(self) -> None:
        for name, one in self.world.there.items():
            more = one.asked or one.total > self.counted.get(name, 0)
            self.counted[name] = one.total
            use: Use = "used" if more else "perhaps" if one.around else "idle"
            seen = Seen(one.up, one.pods, one.ready, one.down, self.world.now, stopped=one.stopped)
            self.groups.looked(name, seen, use)

    def round(self) -> None:
        if self.world.blind:
            self.groups.blind("the cluster's API does not answer")
            self.groups.settle()
            return
        self.look()
        self.groups.settle()
        for act in self.groups.acts():
            self.look()
            self.groups.settle()
            if act.verb == "wake" and self.groups.may_wake(act.name):
                self.wake(act.name)
            elif act.verb == "sleep" and self.groups.may_sleep(act.name):
                self.sleep(act.name)

    def wake(self, name: str) -> None:
        one = self.world.there[name]
        turn = self.groups.states[name].group.turn
        mates = [other.name for other in LISTED if turn and other.turn == turn and other.name != name]
        assert not any(self.world.there[mate].there for mate in mates), "its mate is still there"
        one.up = one.pods = 1 if self.world.half else 2
        if self.world.half:
            return self.groups.undone(name, "the cluster's API does not answer")
        self.groups.woken(name)

    def sleep(self, name: str) -> None:
        one = self.world.there[name]
        whole = one.up == 2 and not one.down
        assert not one.asked and not one.around, "a request is there"
        assert not whole or self.world.now - one.last >= IDLE, "it was used lately"
        self.groups.sleeps(name)
        one.up, one.ready = (1 if self.world.half else 0), False
        if self.world.half:
            return self.groups.undone(name, "the cluster's API does not answer")
        self.groups.slept(name)


class Life(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.site = Site()
        self.waiters: list[str] = []
        self.answers: list[Any] = []

    @property
    def world(self) -> World:
        return self.site.world

    names = st.sampled_from([one.name for one in LISTED])

    @initialize(awake=st.sampled_from([(), ("day",), ("night", "alone"), ("day", "alone")]))
    def some_are_awake(self, awake: tuple[str, ...]) -> None:
        for name in awake:
            self.world.there[name] = There(2, 2, True, last=self.world.now)
        self.round()

    @rule(seconds=st.sampled_from([1, 4, 10, FRESH + 1, HOLD, PLACE, IDLE / 2, IDLE, LIMIT]), looked=st.booleans())
    def time_passes(self, seconds: float, looked: bool) -> None:
        self.world.now += seconds
        if looked:
            self.round()

    @rule(name=names)
    def it_starts_as_it_should(self, name: str) -> None:
        """Somebody asks, and in time it answers."""
        self.asks(name)
        self.round()
        for mate in self.world.there:
            self.pods_go(mate)
        self.round()
        self.world.now += LOAD
        self.it_answers(name)
        self.round()

    @rule(name=names)
    def asks_and_is_seen(self, name: str) -> None:
        self.asks(name)
        self.round()

    @rule()
    def nobody_asks_for_long(self) -> None:
        self.world.now += IDLE
        self.round()

    @rule(name=names)
    def somebody_goes_around_the_router(self, name: str) -> None:
        one = self.world.there[name]
        one.around = one.ready and not one.around

    @rule(name=names)
    def asks(self, name: str) -> None:
        if refused := self.site.groups.ask(name):
            self.answers.append(refused)
        else:
            self.site.groups.enter(name)
            self.waiters.append(name)
        self.collect()

    @rule()
    def round(self) -> None:
        self.site.round()
        self.collect()

    def collect(self) -> None:
        for name in list(self.waiters):
            if verdict := self.site.groups.verdict(name):
                self.waiters.remove(name)
                self.site.groups.leave(name)
                self.answers.append(verdict)
                if verdict is True:  # at its engine, and over at once
                    self.world.there[name].last = self.world.now

    @rule(name=names)
    def pods_go(self, name: str) -> None:
        one = self.world.there[name]
        one.pods = min(one.pods, one.up)

    @rule(name=names)
    def it_answers(self, name: str) -> None:
        one = self.world.there[name]
        if one.up == 2 and one.pods == 2 and not one.down:
            one.ready = True

    @rule(name=names, why=st.sampled_from(["", "failed 5 times in a row without a token"]))
    def it_fails(self, name: str, why: str) -> None:
        one = self.world.there[name]
        if one.up and not one.asked:
            one.ready, one.down, one.around = False, why, False

    @rule(name=names)
    def it_is_new(self, name: str) -> None:
        one = self.world.there[name]
        if not one.there:
            one.down = ""

    @rule(name=names)
    def somebody_asks_the_engine(self, name: str) -> None:
        one = self.world.there[name]
        if one.ready:
            one.asked, one.total, one.last = one.asked + 1, one.total + 1, self.world.now

    @rule(name=names)
    def and_has_the_answer(self, name: str) -> None:
        one = self.world.there[name]
        if one.asked:
            one.asked, one.last = one.asked - 1, self.world.now

    @rule(blind=st.booleans(), half=st.booleans())
    def the_api(self, blind: bool, half: bool) -> None:
        self.world.blind, self.world.half = blind, half

    @rule()
    def the_program_starts_anew(self) -> None:
        self.site.groups.leaving = True
        self.collect()
        assert not self.waiters
        self.site.begin()

    @precondition(lambda self: self.waiters)
    @rule()
    def a_client_leaves(self) -> None:
        self.site.groups.leave(self.waiters.pop())

    @invariant()
    def mates_are_never_awake_together(self) -> None:
        assert not (self.world.there["day"].up and self.world.there["night"].up)

    @invariant()
    def counts_are_right(self) -> None:
        for name, state in self.site.groups.states.items():
            assert state.waiting == self.waiters.count(name)

    def teardown(self) -> None:
        """Whatever the cluster does or does not do from now on, everybody gets an answer."""
        for _ in range(int((LIMIT + 2 * PLACE) / 4)):
            self.world.now += 4
            self.round()
        assert not self.waiters
        assert all(isinstance(one, Refusal) or one is True for one in self.answers)


TestLife = pytest.mark.filterwarnings("ignore")(Life.TestCase)
TestLife.settings = settings(max_examples=thrown(200), stateful_step_count=50)


@pytest.fixture
def site() -> Site:
    return Site()


def awake(site: Site, name: str) -> None:
    site.world.there[name] = There(2, 2, True)
    site.round()


def test_two_who_ask_begin_one_start_and_share_it(site: Site) -> None:
    site.round()
    assert site.groups.ask("alone") is None
    assert site.groups.ask("alone") is None
    site.round()
    assert site.world.there["alone"].up == 2
    assert site.groups.verdict("alone") is False
    awake(site, "alone")
    assert site.groups.verdict("alone") is True
    assert site.groups.states["alone"].counts == {"ready": 1, "failed": 0, "slept": 0}


def test_a_stopped_group_is_woken_by_nobody_and_says_who_stopped_it(site: Site) -> None:
    site.round()
    assert site.groups.ask("day") is None, "one waits when it is stopped"
    site.world.there["day"].stopped = "anna@laptop, 2026-11-26 11:20 UTC"
    site.round()
    for told in (site.groups.verdict("day"), site.groups.ask("day")):
        assert isinstance(told, Refusal) and (told.status, told.code) == (503, "model_stopped")
        assert "day is stopped by anna@laptop, 2026-11-26 11:20 UTC" in told.words
    site.world.now += PLACE + LIMIT
    site.round()
    assert site.world.there["day"].up == 0 and site.groups.states["day"].phase == "stopped"
    assert site.groups.ask("night") is None, "its mate has the place"
    site.round()
    assert site.world.there["night"].up == 2


def test_a_mate_in_use_is_never_ended(site: Site) -> None:
    awake(site, "day")
    site.world.now += IDLE - 60
    site.round()
    refused = site.groups.ask("night")
    assert refused and refused.code == "model_in_turn" and refused.again == 60
    assert refused.words == (
        "night takes turns with day, which was used 4 min ago; night can start in 60 s at the earliest"
    )
    site.world.there["day"].asked = 1
    site.world.now += 10 * IDLE
    site.round()
    refused = site.groups.ask("night")
    assert refused and "is in use" in refused.words
    assert site.world.there["day"].up == 2


def test_an_idle_mate_goes_and_the_other_waits_until_its_pods_are_gone(site: Site) -> None:
    awake(site, "day")
    site.world.now += IDLE
    site.look()
    assert site.groups.ask("night") is None
    site.round()
    assert (site.world.there["day"].up, site.world.there["night"].up) == (0, 0)
    site.round()
    assert site.world.there["night"].up == 0  # pods of its mate are still there
    site.world.there["day"].pods = 0
    site.round()
    assert site.world.there["night"].up == 2
    refused = site.groups.ask("day")
    assert refused and refused.code == "model_in_turn"


def test_a_request_that_ended_while_nothing_could_be_seen_counts_until_then(site: Site) -> None:
    awake(site, "alone")
    site.world.there["alone"].asked = 1
    site.round()
    site.world.now += 10 * IDLE  # the API is away, and the request comes to its end
    site.world.there["alone"].asked = 0
    site.world.there["alone"].last = site.world.now
    site.round()
    assert site.world.there["alone"].up == 2
    site.world.now += IDLE
    site.round()
    assert site.world.there["alone"].up == 0


def test_who_comes_while_it_goes_has_it_started_again(site: Site) -> None:
    awake(site, "alone")
    site.world.now += IDLE
    site.round()
    assert site.world.there["alone"].up == 0 and site.groups.states["alone"].phase == "going"
    assert site.groups.ask("alone") is None
    site.round()
    assert site.world.there["alone"].up == 0
    site.world.there["alone"].pods = 0
    site.round()
    assert site.world.there["alone"].up == 2


def test_who_comes_between_the_decision_and_the_change_keeps_it_awake(site: Site) -> None:
    awake(site, "alone")
    site.world.now += IDLE
    site.look()
    assert [act.verb for act in site.groups.acts()] == ["sleep"]
    assert site.groups.ask("alone") is None
    assert not site.groups.may_sleep("alone")


def test_a_failed_start_is_said_and_not_begun_anew_at_once(site: Site) -> None:
    site.round()
    assert site.groups.ask("alone") is None
    site.round()
    site.world.there["alone"].down = "failed 6 times in a row without a token, the last time: no rail"
    site.round()
    told = site.groups.verdict("alone")
    assert isinstance(told, Refusal) and "no rail" in told.words
    again = site.groups.ask("alone")
    assert again and again.code == "model_not_up" and again.again == HOLD
    assert site.world.there["alone"].up == 2  # as it is, for who looks at it
    site.world.now += HOLD
    site.round()
    assert site.groups.ask("alone") is None
    site.round()
    assert site.world.there["alone"].up == 0  # a supervisor that gave up starts nothing: another one does
    site.world.there["alone"] = There()
    site.round()
    assert site.world.there["alone"].up == 2


def test_a_start_that_takes_too_long_fails_and_may_still_come(site: Site) -> None:
    site.round()
    assert site.groups.ask("alone") is None
    site.round()
    site.world.now += LIMIT + 1
    site.round()
    told = site.groups.verdict("alone")
    assert isinstance(told, Refusal) and "no token came within 10 min" in told.words
    awake(site, "alone")
    assert site.groups.states["alone"].phase == "awake"
    assert site.groups.ask("alone") is None and site.groups.verdict("alone") is True


def test_a_failed_mate_gives_its_place_when_it_has_rested(site: Site) -> None:
    site.round()
    assert site.groups.ask("day") is None
    site.round()
    site.world.there["day"].down = "gave up"
    site.round()
    refused = site.groups.ask("night")
    assert refused and "failed to start" in refused.words
    site.world.now += IDLE
    site.round()
    assert site.world.there["day"].up == 2
    assert site.groups.ask("night") is None
    site.round()
    assert site.world.there["day"].up == 0


def test_what_opens_a_connection_for_a_moment_uses_nothing_but_holds_it(site: Site) -> None:
    awake(site, "alone")
    site.world.now += IDLE
    seen = Seen(2, 2, True, "", site.world.now)
    site.groups.looked("alone", seen, "perhaps")
    assert site.groups.acts() == []
    site.groups.looked("alone", seen, "idle")
    assert [act.verb for act in site.groups.acts()] == ["sleep"]
    site.groups.looked("alone", seen, "perhaps")
    site.groups.looked("alone", seen, "perhaps")
    site.groups.looked("alone", seen, "idle")
    assert site.groups.acts() == []


def test_nothing_is_begun_by_an_old_look(site: Site) -> None:
    site.round()
    site.world.now += FRESH + 1
    site.groups.blind("the cluster's API does not answer: refused")
    refused = site.groups.ask("alone")
    assert refused and refused.words == (
        "alone sleeps and cannot be started now: the cluster's API does not answer: refused"
    )


def test_a_new_file_keeps_what_is_known_of_those_that_stay(site: Site) -> None:
    awake(site, "alone")
    used = site.groups.states["alone"].used
    site.world.now += 100
    site.groups.replace(LISTED[1:])
    assert site.groups.states["alone"].used == used
    gone = site.groups.ask("day")
    assert gone and gone.status == 404


def test_idle_time_counts_anew_after_a_restart(site: Site) -> None:
    awake(site, "alone")
    site.world.now += IDLE - 1
    site.begin()
    site.round()
    site.world.now += IDLE - 1
    site.round()
    assert site.world.there["alone"].up == 2
    site.world.now += 1
    site.round()
    assert site.world.there["alone"].up == 0


def test_a_list_that_a_newer_release_wrote_is_read_and_a_wrong_one_is_refused() -> None:
    """The file changes under a pod that runs; what it does not know is nothing to it."""
    told = {
        "name": "day", "label": "day", "model": "m", "address": "10.0.0.1", "sets": ["day-rank0"], "idle_seconds": 900,
        "turn": "desk", "load_seconds": None, "limit_seconds": 60,
    }  # fmt: skip
    assert Group.of({**told, "unknown": 1}) == Group.of(told)
    with pytest.raises(ValueError, match="could not convert"):
        Group.of({**told, "idle_seconds": "soon"})
