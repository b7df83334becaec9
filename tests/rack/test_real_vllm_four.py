"""vLLM itself in the shape that a rack of four has: TP=4, one rank on each node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rack import contract, real
from tests.rack.test_real_sglang import GLOO
from tests.rack.test_real_vllm import PORT

pytestmark = real.MARKS
NODES = ("spark1", "spark2", "spark3", "spark4")


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served("tiny-dense--vllm-4node", "vllm", PORT, "tiny", NODES, 600.0, GLOO)
        group.start()
        yield group
        group.stop()


def test_four_ranks_stream_what_their_usage_counts(served: real.Served) -> None:
    contract.streams_what_its_usage_counts(served)


def test_the_last_rank_killed_brings_all_four_back(served: real.Served) -> None:
    contract.comes_back_from_a_kill(served, 3)
