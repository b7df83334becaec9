"""vLLM itself in its other shapes: four ranks of one tensor group, and two copies that share a mixture's experts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.rack import contract, real
from tests.rack.test_real_sglang import GLOO
from tests.rack.test_real_vllm import BACK, PORT

pytestmark = real.MARKS
TWO = ("spark1", "spark2")
FOUR = (*TWO, "spark3", "spark4")


def serve(profile: str, nodes: tuple[str, ...], back: float = BACK) -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served(profile, "vllm", PORT, "tiny", nodes, back, GLOO)
        group.start()
        yield group
        group.stop()


@pytest.fixture(scope="class")
def four() -> Iterator[real.Served]:
    yield from serve("tiny-dense--vllm-4node", FOUR, 600.0)


@pytest.fixture(scope="class")
def copies() -> Iterator[real.Served]:
    yield from serve("tiny-moe--vllm-copies", TWO)


class TestFourRanks:
    def test_they_stream_what_their_usage_counts(self, four: real.Served) -> None:
        contract.streams_what_its_usage_counts(four)

    def test_the_last_one_killed_brings_all_four_back(self, four: real.Served) -> None:
        contract.comes_back_from_a_kill(four, 3)


class TestTwoCopies:
    def test_both_answer_behind_one_address(self, copies: real.Served) -> None:
        """Rank 0 gives each request to one copy, its counters say which; each step gathers both copies' tokens."""
        contract.streams_what_its_usage_counts(copies)
        assert all(told["end"] == "whole" for told in copies.crowd(8, tokens=64, words=4))
        page = copies.inside(0, real.PAGE % (PORT, "/metrics"))
        served = dict(re.findall(r'^vllm:generation_tokens_total\{[^}]*engine="(\d+)"[^}]*\} ([\d.e+]+)', page, re.M))
        assert set(served) == {"0", "1"} and all(float(tokens) > 0 for tokens in served.values()), served

    def test_one_killed_brings_both_back(self, copies: real.Served) -> None:
        contract.comes_back_from_a_kill(copies, 1)
