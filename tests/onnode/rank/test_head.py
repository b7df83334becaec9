"""What rank 0 counts as a failure, and what not, when all that it hears is that others followed."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from unittest.mock import MagicMock

import pytest

from sparkloom.onnode.rank.group import Identity
from sparkloom.onnode.rank.head import FOLLOWERS, Head, Link
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.watch_engine import Watch


def head(silent_for: float) -> Head:
    members = [{"rank": n, "node": f"spark{n + 1}", "address": f"127.0.0.{n + 1}"} for n in range(2)]
    data: dict[str, Any] = {"profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": 1}
    made = Head(GroupPlan.of({**data, "members": members}), Identity(0, "c", "b"), MagicMock())
    made.links[1] = Link(1, MagicMock(), time.monotonic() - silent_for)
    made.start.set()
    made._follower = "ncclRemoteError"
    return made


@pytest.mark.parametrize(("silent_for", "counted"), [(0.5, 1), (FOLLOWERS + 0.5, 0)])
def test_a_rank_that_fell_silent_explains_the_others(silent_for: float, counted: int) -> None:
    rank0 = head(silent_for)
    rank0._only_followers(rank0.round)
    assert rank0.stop.is_set() and len(rank0.budget.recent()) == counted


@pytest.mark.parametrize("own", [True, False])
def test_whoever_falls_while_another_rank_leaves_costs_nothing(own: bool) -> None:
    rank0 = head(0.0)
    rank0._draining = True
    if own:
        rank0.lost("the engine ended with status 0", own=True)
    else:
        rank0._only_followers(rank0.round)
    assert rank0.stop.is_set() and rank0.budget.recent() == []


def test_a_rank_that_leaves_says_so_and_its_engine_s_end_in_one_packet() -> None:
    """Both lines are read before anything else runs: on a busy machine a node that shut down cost a restart."""

    async def told() -> Head:
        rank0 = head(0.0)
        rank0._hear(rank0.links[1], {"leave": True})
        rank0._hear(rank0.links[1], {"lost": "the engine was ended by SIGTERM", "own": True, "epoch": rank0.epoch})
        await asyncio.wait_for(rank0.stop.wait(), 5)
        return rank0

    assert asyncio.run(told()).budget.recent() == []


def test_rank_0_forgets_no_token_because_a_rank_has_missed_it() -> None:
    """Its connection broke off as the group was proved; it comes back with a row from before, and is told better."""
    rank0 = head(0.0)
    rank0.begun, rank0.epoch = True, 3
    rank0._welcome(rank0.links[1], {"epoch": 3, "failures": [5.0], "row": ["a", "b"]})
    assert rank0.budget.row == []
    sent = [call.args[0] for call in rank0.links[1].wire.send.call_args_list]  # type: ignore[attr-defined]
    assert {"proved": True, "epoch": 3} in sent


def test_a_new_rank_0_learns_from_the_others_until_it_has_begun() -> None:
    rank0 = head(0.0)
    rank0._welcome(rank0.links[1], {"epoch": 3, "failures": [5.0], "row": ["a", "b"], "served": True})
    assert rank0.budget.row == ["a", "b"] and rank0.epoch == 3
    assert rank0.budget.served and "each time before it had served for 10 s" in rank0.budget.in_a_row(2)


def test_who_is_killed_as_the_group_stops_says_so() -> None:
    """The stop was heard a millisecond before the kill was collected: no log named a cause."""

    async def cause() -> str:
        rank0, engine = head(0.0), MagicMock(ended=asyncio.Event(), code=-9, tail=[])
        rank0.stop.set()
        asyncio.get_running_loop().call_later(0.001, engine.ended.set)
        return await Watch(rank0.plan, rank0, MagicMock()).until_over(engine)

    assert asyncio.run(cause()).startswith("the engine was ended by SIGKILL")
