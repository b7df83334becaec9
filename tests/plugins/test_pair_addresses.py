"""Two Sparks by one cable, by a switch with one rail, and as the two pairs of a ring of four.

Each is cabled in network namespaces and heard; the `fabric:` that discover makes of it is rendered, and its two ranks
meet over the cable between them, on every rail.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import from_vars
from sparkloom.launch.resolve import resolve
from sparkloom.site.cabling import declare, look
from testbed.beds.cabling import INNER, OUTER, Bench
from tests.launch.test_fabric import RAILS, variables
from tests.launch.test_ring import PAIR, env
from tests.namespaces import needs_namespaces
from tests.plugins.test_cablings_heard import ALL, FOUR, ONE, THREE, TWO, Sparks, inner, ring
from tests.plugins.test_ring_addresses import MTU, SIZE, Ranks, put

pytestmark = needs_namespaces
BOTH = "=rocep1s0f0,roceP2p1s0f0"
Told = tuple[Callable[[Bench], None], list[dict[str, Any]], dict[tuple[str, str], str]]
WAYS: dict[str, Told] = {  # how it is cabled, which rails stand in fabric.yml, and each rank's devices
    "one cable": (lambda b: b.cable((ONE, INNER), (TWO, INNER)), RAILS, {(ONE, TWO): f"{BOTH} {BOTH}"}),
    "one cable, crossed": (
        lambda b: b.cable((ONE, INNER), (TWO, OUTER)), RAILS, {(ONE, TWO): f"{BOTH} {BOTH.replace('f0', 'f1')}"},
    ),
    "a switch, one rail": (
        lambda b: b.switch(*inner(ONE, TWO)), RAILS[:1], {(ONE, TWO): "=rocep1s0f0 =rocep1s0f0"},
    ),
    "the pairs of a ring of four": (
        lambda b: ring(b, ALL, 4), RAILS,
        {pair: f"{BOTH} {BOTH.replace('f0', 'f1')}" for pair in ((ONE, TWO), (THREE, FOUR))},
    ),
}  # fmt: skip


@pytest.fixture
def sparks(tmp_path: Path) -> Iterator[Sparks]:
    with contextlib.closing(Bench(ALL, tmp_path)) as bench:
        bench.reverse_path(1)
        with contextlib.closing(Sparks(bench)) as made:
            yield made


def site(nodes: tuple[str, ...], rails: list[dict[str, Any]]) -> Cluster:
    told = variables(4, rails=rails, attach="pf", mtu=MTU)
    return from_vars({**told, "nodes": [node for node in told["nodes"] if node["name"] in nodes]})


@pytest.mark.parametrize("way", WAYS)
def test_what_discover_makes_of_it_joins_the_two_on_every_rail(way: str, sparks: Sparks) -> None:
    build, rails, devices = WAYS[way]
    build(sparks.bench)
    told = sparks.facts(ALL)
    for pair, expected in devices.items():
        before = site(pair, rails)
        found = look.judge(before, {node: told[node] for node in pair})
        where = site(pair, declare.fabric(found, before)["rails"])
        meet(sparks.bench, where, len(rails))
        launch = resolve(profile.load(PAIR), where)
        said = [env(launch, rank) for rank in (0, 1)]
        assert " ".join(one["NCCL_IB_HCA"] for one in said) == expected
        for one in said:
            assert one.get("NCCL_IB_SUBNET_AWARE_ROUTING") == ("1" if len(rails) > 1 else None)
            assert not {"NCCL_ALGO", "NCCL_IB_MERGE_NICS", "NCCL_IB_GID_INDEX", "NCCL_IB_SUBNET_PREFIX_LEN"} & {*one}


def meet(bench: Bench, where: Cluster, rails: int) -> None:
    plan = put(bench, where, PAIR)
    ranks = Ranks(bench, plan)
    try:
        assert [len(member["rails"]) for member in plan["members"]] == [rails, rails]
        first, second = ranks.look()
        assert first == {"faults": [], "met": {"1": [1, 1]}} and second == {"faults": [], "met": {"0": [0, 0]}}
        moved = bench.carried()
        ranks.send(0, 1)
        assert sum(bench.carried()) - sum(moved) >= SIZE
    finally:
        ranks.close()
