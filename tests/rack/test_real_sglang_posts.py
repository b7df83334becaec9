"""SGLang 0.5.12 itself, the release of the posts that this product is made from: what is other there is seen here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rack import contract, real
from tests.rack.test_real_sglang import BACK, GLOO

pytestmark = real.MARKS
NAME = "tiny-dense--sglang-0512-2node"


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served(NAME, "sglang-0.5.12", 30000, "tiny", ("spark1", "spark2"), BACK, GLOO)
        group.start()
        yield group


def test_it_streams_what_its_own_usage_counts(served: real.Served) -> None:
    contract.streams_what_its_usage_counts(served)


def test_it_is_the_release_that_the_profile_names(served: real.Served) -> None:
    said = served.inside(0, "from importlib.metadata import version; print(version('sglang'))")
    assert said.strip() == "0.5.12"


def test_the_counters_that_we_read_are_its_own(served: real.Served) -> None:
    contract.has_the_counters_that_we_read(served)


def test_a_client_needs_the_key(served: real.Served) -> None:
    contract.answers_nobody_without_its_key(served)


def test_it_listens_where_the_table_says_and_at_ports_of_chance(served: real.Served) -> None:
    contract.listens_where_the_table_says_and_at_ports_of_chance(served)


def test_a_full_queue_of_long_prompts_is_answered_and_nobody_is_killed(served: real.Served) -> None:
    contract.answers_a_full_queue(served, words=300)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_scheduler_brings_the_group_back_and_no_client_waits(served: real.Served, rank: int) -> None:
    contract.comes_back_from_a_kill(served, rank)


def test_a_frozen_scheduler_is_found(served: real.Served) -> None:
    contract.is_found_when_it_freezes(served, 1, "idle")
