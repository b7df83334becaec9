"""What others' Ray commands are here; and what copies (dp) of vLLM are launched as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs.inventory import from_vars
from sparkloom.launch import engines
from tests.launch.test_fabric import variables

EIGHT = from_vars(variables(8))
MINIMAX = "nvidia--minimax-m2.5-nvfp4"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ray start --block --head --port 6379 --node-ip-address $NODE_IP", "starts Ray's cluster"),
        ("/usr/bin/ray stop", "nothing to stop"),
        ('ray start --resources={"spark":1}', "resources of its own"),
        ("ray job submit x", "no counterpart"),
        ("vllm serve", ""),
        ("", ""),
    ],
)
def test_a_ray_line_is_translated_or_named(line: str, said: str) -> None:
    found = engines.get("vllm").other_command(line.split())
    assert said in found if said else not found


# --- copies


@pytest.fixture
def copies(tmp_path: Path) -> Any:
    def make(parallel: dict[str, int], release: str = "0.32.0", engine: str = "vllm", **launch: Any) -> str:
        file = tmp_path / "copies.yml"
        data = {
            "extends": MINIMAX,
            "summary": "copies",
            "engine": {"name": engine, "release": release, "image": f"localhost/{engine}:1"},
            "launch": {"parallel": parallel, "max_model_len": 8192, **launch},
        }
        if engine == "sglang":
            data["launch"] = {"parallel": parallel}
        file.write_text(yaml.safe_dump(data))
        return str(file)

    return make


@pytest.mark.parametrize("release", ["0.19.0", "0.32.0", "0.33.0"])
def test_copies_follow_from_the_nodes(copies: Any, release: str) -> None:
    """The release infers each node's copies, and where they meet, from nnodes, node_rank and master_addr."""
    ranks = case.judge(copies({"nodes": 4, "tp": 2, "dp": 2, "ep": 4}, release)).launch.ranks
    for rank in ranks:
        words = rank.argv
        for flag, value in {
            "--tensor-parallel-size": "2", "--data-parallel-size": "2", "--nnodes": "4", "--node-rank": str(rank.index),
            "--distributed-executor-backend": "mp",
        }.items():  # fmt: skip
            assert words[words.index(flag) + 1] == value
        assert "--enable-expert-parallel" in words and ("--headless" in words) == (rank.index > 0)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 6, 7, 8])
def test_one_spark_to_eight(copies: Any, nodes: int) -> None:
    """As many ranks as Sparks, each told its own number: a cluster of the test's own has eight."""
    ranks = case.judge(copies({"nodes": nodes, "tp": 1, "pp": nodes}), EIGHT).launch.ranks
    assert len(ranks) == nodes
    assert [("--headless" in rank.argv) for rank in ranks] == [False] + [True] * (nodes - 1)


def found(profile: str, rule: str) -> list[str]:
    return [finding.message for finding in case.judge(profile).findings if finding.rule == rule]


def test_another_number_of_copies_in_the_flags_is_named(copies: Any) -> None:
    (said,) = found(copies({"nodes": 2, "tp": 2}, data_parallel_size=2), "vllm-copies")
    assert said.startswith("data_parallel_size is 2 beside parallel.dp 1: ")


def test_experts_are_dealt_over_all_ranks_or_none(copies: Any) -> None:
    (said,) = found(copies({"nodes": 4, "tp": 4, "ep": 2}), "vllm-expert-ranks")
    assert said.startswith("ep 2 at tp 4 x dp 1: ")
    assert not found(copies({"nodes": 4, "tp": 2, "dp": 2, "ep": 4}), "vllm-expert-ranks")


def test_an_engine_without_copies_over_nodes_says_what_it_has(copies: Any) -> None:
    with pytest.raises(InputError, match="enable_dp_attention: true"):
        case.judge(copies({"nodes": 4, "tp": 2, "dp": 2}, "0.5.23", "sglang"))
