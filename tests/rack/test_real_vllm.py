"""vLLM itself on the rack, two nodes over the rails: what the product promises of an engine, judged by the engine.

CPU and gloo in the place of GPU and NCCL (testbed/make/real/vllm.py); all else is the shipped release.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest

from sparkloom.launch import engines
from testbed.beds.rack import inventory
from tests.rack import contract, real
from tests.rack.running import run
from tests.rack.test_real_sglang import GLOO

pytestmark = real.MARKS
NAME = "tiny-dense--vllm-2node"
PORT = 8000
BACK = 420.0  # seconds: both ranks import torch anew on these two cores
GONE = {"vllm:gpu_cache_usage_perc"}  # its name in older releases


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served(NAME, "vllm", PORT, "tiny", ("spark1", "spark2"), BACK, GLOO)
        group.start()
        yield group


def test_it_streams_what_its_own_usage_counts(served: real.Served) -> None:
    contract.streams_what_its_usage_counts(served)


def test_a_second_run_changes_nothing(served: real.Served) -> None:
    done = run("sparkloom", "status", "-i", str(inventory.path()))
    assert done.returncode == 0, done.stdout
    site = run(*served.site)
    assert site.returncode == 0 and "changed=0" in site.stdout, site.stdout[-3000:]


def test_the_counters_that_we_read_are_its_own(served: real.Served) -> None:
    known = set(re.findall(r"^([a-z][\w:]*)", served.inside(0, real.PAGE % (PORT, "/metrics")), re.M))
    requests, moves = engines.counters("vllm")
    assert {*requests, *moves} - GONE <= known, {*requests, *moves} - known


def test_the_plan_says_how_much_its_cache_holds(served: real.Served) -> None:
    said = re.search(r"KV cache size: ([\d,]+) tokens", served.log(0))
    plan = run("sparkloom", "plan", NAME, "-i", str(inventory.path())).stdout
    assert said and f"{said[1]} KV tokens" in plan, plan


def test_a_client_needs_the_key(served: real.Served) -> None:
    assert served.inside(0, real.REFUSED % PORT).strip() == "401"


def test_it_listens_where_the_table_says_and_at_ports_of_chance(served: real.Served) -> None:
    contract.listens_where_the_table_says_and_at_ports_of_chance(served)


def test_a_full_queue_of_long_prompts_is_answered_and_nobody_is_killed(served: real.Served) -> None:
    """Four run at once, twelve ask; a prompt is 1,800 tokens of a model that takes 4,096."""
    contract.answers_a_full_queue(served, words=300)


def test_a_client_that_leaves_leaves_nothing_running(served: real.Served) -> None:
    contract.forgets_a_client_that_left(served, "vllm:num_requests_running")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_brings_the_group_back_and_no_client_waits(served: real.Served, rank: int) -> None:
    """Its server says an error and then [DONE], and ends with status 0; rank 1 alone would outlive rank 0 for ever."""
    assert contract.comes_back_from_a_kill(served, rank)["pieces"]
    log = served.log(rank)
    assert re.search(r"failed: .*scheduler|failed: .*the engine", log), log[-3000:]


def test_a_killed_process_of_an_idle_group_is_found(served: real.Served) -> None:
    """Its /health says 200 until somebody asks for a token."""
    epoch = served.group.epoch()
    served.signal(1, signal.SIGKILL)
    print(f"found after {served.wait_found(epoch, 180):.0f} s")
    print(f"back after {served.wait_back(epoch):.0f} s more")


@pytest.mark.parametrize("load", ["idle", "busy"])
def test_a_frozen_process_is_found(served: real.Served, load: str) -> None:
    served.forget_failures()
    contract.is_found_when_it_freezes(served, 1, load)


def test_it_goes_within_its_grace(served: real.Served) -> None:
    contract.goes_within_its_grace(served)
