"""How others' vLLM commands lie on their nodes, read as `launch.parallel`; and what copies (dp) are launched as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs.inventory import from_vars
from sparkloom.launch.engines.vllm import placement
from tests.launch.test_fabric import variables

EIGHT = from_vars(variables(8))
MINIMAX = "nvidia--minimax-m2.5-nvfp4"


def test_ray_is_translated_and_said() -> None:
    found = placement.read(
        {"tensor_parallel_size": 2, "distributed_executor_backend": "ray", "max_model_len": 4096, "host": "0.0.0.0"},
        {"VLLM_USE_RAY_SPMD_WORKER": "1", "VLLM_LOGGING_LEVEL": "INFO"},
    )
    assert found.parallel == {"nodes": 2, "tp": 2, "pp": 1, "ep": 1}
    assert found.flags == {"max_model_len": 4096} and found.env == {"VLLM_LOGGING_LEVEL": "INFO"}
    assert {remark.what for remark in found.remarks} == {
        "distributed_executor_backend ray", "host", "VLLM_USE_RAY_SPMD_WORKER",
    }  # fmt: skip
    assert not found.lost


def test_nothing_is_dropped_in_silence() -> None:
    """Every flag is a part of the placement, stays a flag, or has a remark."""
    given: dict[str, Any] = {
        "tensor_parallel_size": 2, "data_parallel_size": 2, "enable_expert_parallel": True, "nnodes": 4, "node_rank": 1,
        "headless": True, "data_parallel_backend": "ray", "distributed_executor_backend": "external_launcher", "x": 1,
    }  # fmt: skip
    found = placement.read(given)
    assert found.parallel == {"nodes": 4, "tp": 2, "pp": 1, "dp": 2, "ep": 4}
    told = {remark.what.split()[0] for remark in found.remarks}
    assert set(given) == {*placement.SIZES, "enable_expert_parallel"} - {"pipeline_parallel_size"} | told | {
        *found.flags
    }
    assert [remark.what for remark in found.lost] == ["data_parallel_backend ray"]


@pytest.mark.parametrize(
    ("flags", "nodes", "parallel"),
    [
        ({}, None, {"nodes": 1, "tp": 1, "pp": 1, "ep": 1}),
        ({"enable_expert_parallel": True}, 1, {"nodes": 1, "tp": 1, "pp": 1, "ep": 1}),
        ({"pipeline_parallel_size": 3}, 3, {"nodes": 3, "tp": 1, "pp": 3, "ep": 1}),
        (
            {"data_parallel_size": 8, "enable_expert_parallel": True},
            8,
            {"nodes": 8, "tp": 1, "pp": 1, "dp": 8, "ep": 8},
        ),
    ],
)
def test_every_split(flags: dict[str, Any], nodes: int | None, parallel: dict[str, int]) -> None:
    assert placement.read(flags, nodes=nodes).parallel == parallel


@pytest.mark.parametrize(
    ("flags", "nodes", "said"),
    [
        ({"tensor_parallel_size": 2}, 4, r"tp 2 makes 2 rank\(s\) for 4 node\(s\)"),
        ({"tensor_parallel_size": 2, "data_parallel_size": 2}, 2, "tp 2 x dp 2 makes 4"),
        ({"tensor_parallel_size": "two"}, None, "expected a whole number from 1, found 'two'"),
    ],
)
def test_what_could_not_start_is_refused(flags: dict[str, Any], nodes: int | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        placement.read(flags, nodes=nodes)


@pytest.mark.parametrize(
    ("line", "said", "lost"),
    [
        ("ray start --block --head --port 6379 --node-ip-address $NODE_IP", "starts Ray's cluster", False),
        ("/usr/bin/ray stop", "nothing to stop", False),
        ('ray start --resources={"spark":1}', "resources of its own", True),
        ("ray job submit x", "no counterpart", True),
    ],
)
def test_a_ray_line_is_translated_or_named(line: str, said: str, lost: bool) -> None:
    remark = placement.ray(line.split())
    assert remark is not None and said in remark.why and remark.lost is lost


def test_other_lines_are_not_rays() -> None:
    assert placement.ray(["vllm", "serve"]) is None and placement.ray([]) is None


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
