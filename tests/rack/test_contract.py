"""The stand-in for SGLang, asked what SGLang itself is asked in test_real_sglang.py: they cannot drift apart unseen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rack import contract, real

pytestmark = real.MARKS
NAME = "nvidia--minimax-m2.5-nvfp4--2node"


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    group = real.Served(NAME, "", 30000, "minimax-m2.5", ("spark1", "spark2"), 240.0)
    group.start()
    yield group


def test_it_streams_what_its_own_usage_counts(served: real.Served) -> None:
    contract.streams_what_its_usage_counts(served)


def test_a_full_queue_of_long_prompts_is_answered_and_nobody_is_killed(served: real.Served) -> None:
    contract.answers_a_full_queue(served, words=300)


def test_a_client_that_leaves_leaves_nothing_running(served: real.Served) -> None:
    contract.forgets_a_client_that_left(served, "sglang:num_running_reqs")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_brings_the_group_back_and_no_client_waits(served: real.Served, rank: int) -> None:
    contract.comes_back_from_a_kill(served, rank)


@pytest.mark.parametrize("load", ["idle", "busy", "retried"])
def test_a_frozen_rank_is_found(served: real.Served, load: str) -> None:
    contract.is_found_when_it_freezes(served, 1, load)


def test_it_goes_within_its_grace(served: real.Served) -> None:
    contract.goes_within_its_grace(served)
