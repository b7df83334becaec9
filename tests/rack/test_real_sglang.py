"""SGLang itself on the rack, two nodes over the rails: what the product promises of an engine, judged by the engine.

CPU and gloo in the place of GPU and NCCL (testbed/make/real/sglang.py); all else is the shipped release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from testbed.beds.rack import inventory
from testbed.trials import kills
from tests.rack import contract, real
from tests.rack.running import run

pytestmark = real.MARKS
NAME = "tiny-dense--sglang-2node"
# NCCL is what a CPU lacks: nothing proves the rails in a log of gloo's.
GLOO = ("-e", "model_serving_transport=warn")
BACK = 420.0  # seconds: both ranks import torch anew on these two cores


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served(NAME, "sglang", 30000, "tiny", ("spark1", "spark2"), BACK, GLOO)
        group.start()
        yield group


def test_it_streams_what_its_own_usage_counts(served: real.Served) -> None:
    contract.streams_what_its_usage_counts(served)


def test_it_answers_through_the_endpoint(served: real.Served) -> None:
    done = run("sparkloom", "status", "-i", str(inventory.path()))
    assert done.returncode == 0, done.stdout
    site = run(*served.site)
    assert site.returncode == 0 and "changed=0" in site.stdout, site.stdout[-3000:]
    assert NAME in site.stdout.splitlines()[-1], site.stdout[-500:]


def test_the_counters_that_we_read_are_its_own(served: real.Served) -> None:
    contract.has_the_counters_that_we_read(served)


def test_a_client_needs_the_key(served: real.Served) -> None:
    contract.answers_nobody_without_its_key(served)


def test_it_listens_where_the_table_says_and_at_ports_of_chance(served: real.Served) -> None:
    contract.listens_where_the_table_says_and_at_ports_of_chance(served)


def test_a_full_queue_of_long_prompts_is_answered_and_nobody_is_killed(served: real.Served) -> None:
    """Four run at once, twelve ask; a prompt is 1,800 tokens of a model that takes 4,096."""
    contract.answers_a_full_queue(served, words=300)


def test_a_client_that_leaves_leaves_nothing_running(served: real.Served) -> None:
    contract.forgets_a_client_that_left(served, "sglang:num_running_reqs")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_scheduler_brings_the_group_back_and_no_client_waits(served: real.Served, rank: int) -> None:
    assert contract.comes_back_from_a_kill(served, rank)["pieces"]
    log = served.log(rank)
    assert re.search(r"failed: .*scheduler|failed: .*the engine", log), log[-3000:]


@pytest.mark.parametrize("load", ["idle", "busy", "retried"])
def test_a_frozen_scheduler_is_found(served: real.Served, load: str) -> None:
    contract.is_found_when_it_freezes(served, 1, load)


@pytest.mark.parametrize(("rank", "kind"), [(0, "container"), (1, "pod"), (1, "node")])
def test_what_holds_an_engine_may_go_too(served: real.Served, rank: int, kind: str) -> None:
    done = kills.once(served.group, kind, rank)
    assert done.good, done


def test_it_goes_within_its_grace(served: real.Served) -> None:
    contract.goes_within_its_grace(served)
