"""What the kills and the refusals of the rack are judged by, without a rack."""

from __future__ import annotations

import re
from types import SimpleNamespace as Made

import pytest

from sparkloom.onnode.now.seen import Seen
from sparkloom.onnode.rank.budget import RestartBudget
from testbed.trials import kills, refusals

AT = 1795302001.123456
SAID = "rail a: RDMA device rocep1s0f0v0 is not there"
LINE = f"2026-11-21T23:00:01.123456789Z [sparkloom rank 1 epoch 0] refused: {SAID}"


class Waiting(kills.ServedGroup):
    """A group whose pods and words are given."""

    def __init__(self, serving: list[bool]) -> None:
        self.serving = iter(serving)

    def pods(self) -> list[object]:
        names = [f"x-rank{rank}-0" for rank in range(4)]
        running = {"state": {"running": {"startedAt": "2026-11-21T23:00:00Z"}}}
        status = Seen({"containerStatuses": [running]})
        return [Made(metadata=Made(name=name), spec=Made(node_name="n"), status=status) for name in names]

    def epoch(self) -> int:
        return 3

    def serves(self, later_than: int) -> bool:
        return next(self.serving)

    def head_ready(self) -> bool:
        return False

    def described(self) -> str:
        return "x-rank0-0 peers: rank 2 has not come"

    def token(self) -> str:
        return "16 tokens"


def test_each_kind_comes_once_before_one_comes_again() -> None:
    planned = kills.by_chance(5, 8, 4)
    assert {kind for kind, _ in planned[:4]} == set(kills.KINDS) == {kind for kind, _ in planned[4:]}
    assert planned == kills.by_chance(5, 8, 4) != kills.by_chance(6, 8, 4)
    assert all(0 <= rank < 4 for _, rank in planned)


def test_twenty_kills_take_every_rank() -> None:
    planned = kills.in_turn(kills.KINDS, 5, 4)
    assert len(planned) == 20 and all(
        {rank for kind, rank in planned if kind == k} == {0, 1, 2, 3} for k in kills.KINDS
    )
    assert next(one for one in planned if one[0] == "node") == ("node", 1)


def test_a_group_that_does_not_come_back_is_said_and_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills, "LIMIT", -1.0)
    monkeypatch.setitem(kills.KINDS, "pod", lambda *_: None)
    rounds = kills.perform(Waiting([False, True]), [("pod", 2), ("pod", 1)])
    assert [one.good for one in rounds] == [False] and "rank 2 has not come" in rounds[0].note
    assert "| pod | 1 | 0 |" in kills.table(rounds)


def test_a_group_that_is_back_has_given_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kills.KINDS, "pod", lambda *_: None)
    assert kills.once(Waiting([True]), "pod", 1).note == "16 tokens"


def test_a_line_that_names_a_cause_is_known_by_rank_time_and_words() -> None:
    match = refusals.NAMED.match(LINE)
    assert match and match[2] == SAID
    assert refusals.moment(match[1]) == AT
    assert not refusals.NAMED.match(LINE.replace("refused:", "rails:"))
    named = [one.fault for one in refusals.TABLE if re.search(one.words, match[2])]
    assert named == ["no RDMA device"]


@pytest.mark.parametrize(("since", "after"), [(None, 1.123456), (AT - 2, 2.0), (AT + 1, None)])
def test_time_runs_from_the_containers_start_or_from_the_fault(
    monkeypatch: pytest.MonkeyPatch, since: float | None, after: float | None
) -> None:
    monkeypatch.setattr(refusals, "kubectl", lambda *_, **__: LINE)
    monkeypatch.setattr(refusals.Trial, "_model", lambda _: "m")
    found = refusals.Trial(Waiting([]), print)._named(refusals.AT_START[0], since)
    assert found == (after and (pytest.approx(after, abs=1e-4), SAID))


@pytest.mark.parametrize("served", [False, True])
def test_a_group_that_is_given_up_is_known_by_its_words(served: bool) -> None:
    budget = RestartBudget(restarts=2, window=600)
    budget.served = served
    for _ in range(3):
        budget.failed("exit")
    line = f"stays down: {budget.spent()}, the last time: the engine ended itself"
    assert re.search(refusals.BUDGET.words, line), line


def test_what_serves_meanwhile_is_in_the_row() -> None:
    assert "BUT meanwhile Ready: x" in refusals.row(refusals.Seen("no GID", 3, 40, "no GID", "Ready: x"))
    assert "BUT" not in refusals.row(refusals.Seen("no GID", 3, 40, "no GID"))
