"""llama.cpp itself on the rack, a server and an rpc-server over the rails: it judges what we promise of engines.

Debian's build, on CPU (testbed/make/real/llamacpp.py); all else is what upstream released.
"""

from __future__ import annotations

import json
import re
import ssl
import sys
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from scripts.oracle import llamacpp as oracle
from sparkloom.inputs import profile
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.launch import engines, ports
from sparkloom.launch.engines import llamacpp as ours
from sparkloom.onnode import smoke
from testbed.base import names
from testbed.beds.rack import cluster, inventory
from testbed.trials import kills
from tests.rack import contract, real
from tests.rack.running import run

pytestmark = real.MARKS
NAME = "smollm2-135m-instruct--llamacpp-2node"
BACK = 300.0  # a frozen process is given up after 90 s and more of silence


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served(NAME, "llamacpp", 8080, "SmolLM2-135M-Instruct", ("spark1", "spark2"), BACK)
        group.start()
        yield group


def test_it_streams_what_its_own_usage_counts(served: real.Served) -> None:
    contract.streams_what_its_usage_counts(served)


def test_answers_within_milliseconds_come_whole_through_the_endpoint(served: real.Served) -> None:
    """Go's proxy cut 18 of 300 of them off, as they began before it had read that the request's body was at its end."""
    gateway, where, cuts = names.STATE / "gateway", cluster.nodes()[names.NODES["spark1"]]["ip"], []
    trust = ssl.create_default_context(cafile=str(gateway / "ca.pem"))
    key = (gateway / "api-key").read_text().split()[0]
    for _ in range(300):
        try:
            smoke.ask(lambda: HTTPSConnection(where, context=trust), str, max_tokens=8, key=key)
        except smoke.NoAnswer as error:
            cuts.append(str(error))
    assert not cuts, cuts


def test_a_second_run_changes_nothing(served: real.Served) -> None:
    assert run("sparkloom", "status", "-i", str(inventory.path())).returncode == 0
    site = run(*served.site)
    assert site.returncode == 0 and "changed=0" in site.stdout, site.stdout[-3000:]


def test_the_catalog_is_what_its_programs_say(served: real.Served) -> None:
    """Whoever gets another build of Debian's than the pinned one sees here what came and went."""
    asks = "import subprocess as s; print(s.run([{!r}, '--help'], capture_output=True, text=True).stdout)"
    said = oracle.flags(served.inside(0, asks.format("/app/llama-server")))
    catalog = Catalog.load("llamacpp", profile.load(NAME).profile.engine.release)
    assert {name for flag in catalog.flags() for name in flag.names} == {
        *said, *(name for facts in said.values() for name in (*facts.get("also", ()), *facts.get("off", ()))),
    }  # fmt: skip


def test_the_plan_says_how_many_it_serves_at_once(served: real.Served) -> None:
    said = re.search(r"n_slots = (\d+), n_ctx_slot = (\d+), kv_unified = '(\w+)'", served.log(0))
    assert said
    slots, context, shared = said.groups()
    plan = run("sparkloom", "plan", NAME, "-i", str(inventory.path())).stdout
    assert f"requests at once: {slots}," in plan and shared == "true", plan
    assert f"longest request: {int(context):,} tokens" in plan, plan


def test_its_start_tells_where_it_is(served: real.Served) -> None:
    """Build b11669 says nothing of its load unless told to."""
    patterns = engines.get("llamacpp").progress
    log = served.log(0)
    assert all(re.search(pattern, log) for pattern, _ in patterns), [p for p, _ in patterns if not re.search(p, log)]


def test_all_layers_are_lent(served: real.Served) -> None:
    assert re.search(r"offloaded 31/31 layers", served.log(0))
    assert re.search(r"RPC0\[192\.168\.100\.12:50052\] +model buffer size = +[1-9]", served.log(0)), served.log(0)[
        -6000:
    ]


def test_the_gauges_and_counters_that_we_read_are_its_own(served: real.Served) -> None:
    known = set(re.findall(r"^([a-z][\w:]*)", served.inside(0, real.PAGE % (8080, "/metrics")), re.M))
    requests, moves = engines.counters("llamacpp")
    gauges = json.loads(Path(str(ours.__file__)).with_name("measure.json").read_text())["gauges"]
    assert {*requests, *moves, *gauges} <= known, {*requests, *moves, *gauges} - known


def test_a_client_needs_the_key(served: real.Served) -> None:
    assert served.inside(0, real.REFUSED % 8080).strip() in {"200", "401"}  # it tells its models' names to anybody
    refused = served.inside(0, real.REFUSED.replace("v1/models", "slots") % 8080).strip()
    assert refused == "401", refused


def test_it_listens_where_the_table_says(served: real.Served) -> None:
    said = engines.get("llamacpp").ports({}, {}, profile.load(NAME).profile.engine.release, 2)
    fixed = {port.number for port in [*said, *ports.OURS]}
    for rank, wanted in ((0, 8080), (1, ports.RPC)):
        listening = served.listening(rank)
        assert wanted in listening <= fixed, listening


def test_a_full_queue_of_long_prompts_is_answered_and_nobody_is_killed(served: real.Served) -> None:
    contract.answers_a_full_queue(served, words=150)


def test_requests_that_need_more_than_the_shared_cache_are_told_so(served: real.Served) -> None:
    """It ends them in the middle of their answers; the plan says so before. Nobody is restarted for it.

    Four of 2,000 tokens and more are above its context of 8,192. Answers are long, so that they overlap also where the
    machine is so busy that clients begin seconds apart.
    """
    epoch = served.group.epoch()
    answers = served.clients_at_once(clients=4, tokens=160, words=1900)
    ends = [told["end"] for told in answers]
    told = ("whole", "ontext size", "HTTP Error 500", "HTTPError 500")
    assert all(any(word in end for word in told) for end in ends) and set(ends) != {"whole"}, answers
    assert "are ended" in run("sparkloom", "plan", NAME, "-i", str(inventory.path())).stdout
    assert served.group.epoch() == epoch and served.asked()["end"] == "whole"


def test_a_client_that_leaves_leaves_nothing_running(served: real.Served) -> None:
    contract.forgets_a_client_that_left(served, "llamacpp:requests_processing")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_engine_brings_the_group_back_and_no_client_waits(served: real.Served, rank: int) -> None:
    contract.comes_back_from_a_kill(served, rank)


@pytest.mark.parametrize("load", ["idle", "busy"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_frozen_engine_is_found(served: real.Served, rank: int, load: str) -> None:
    served.forget_failures()
    contract.is_found_when_it_freezes(served, rank, load)


@pytest.mark.parametrize("kind", ["container", "pod", "node"])
@pytest.mark.parametrize("rank", [0, 1])
def test_what_holds_an_engine_may_go_too(served: real.Served, rank: int, kind: str) -> None:
    if (rank, kind) == (0, "node"):
        pytest.skip("rank 0's node is the control plane; make test kills it with the stand-in")
    done = kills.once(served.group, kind, rank)
    assert done.good, done


def test_it_goes_within_its_grace_and_leaves_nothing(served: real.Served) -> None:
    contract.goes_within_its_grace(served)
    look = ("rack", "exec", "spark2", "--", "sh", "-c", "pgrep -fa 'rpc[-]server' || true")
    assert not run(sys.executable, "-m", "testbed", *look).stdout.strip()
