"""SGLang itself in the shape that a rack of four has: TP=4 and EP=4, a mixture of experts, one rank on each node."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.rack import real
from tests.rack.test_real_sglang import GLOO

pytestmark = real.MARKS
NODES = ("spark1", "spark2", "spark3", "spark4")


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served("tiny-moe--sglang-4node", "sglang", 30000, "tiny", NODES, 600.0, GLOO)
        group.start()
        yield group
        group.stop()


def test_four_ranks_stream_what_their_usage_counts(served: real.Served) -> None:
    told = served.asked(patience=300)
    assert told["end"] == "whole" and told["usage"]["completion_tokens"] == 24, told


def test_the_last_rank_killed_brings_all_four_back(served: real.Served) -> None:
    epoch = served.group.epoch()
    with served.somebody_reads(waits=120) as told:
        served.signal(3, signal.SIGKILL)
    assert told["end"] != "whole", told
    print(f"back after {served.wait_back(epoch):.0f} s")
    assert served.asked(patience=300)["end"] == "whole"
