"""TensorRT-LLM: one node, counters on, and one clear line where somebody asks for more."""

from __future__ import annotations

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.inputs.inventory import load
from sparkloom.launch.engines.trtllm.adapter import OPTIONS_FILE
from sparkloom.launch.resolve import Launch, resolve

ONE = "nvidia--nemotron-3-super-120b-a12b-nvfp4--trtllm-1node"


def launch(*changes: str) -> Launch:
    return resolve(profile.load(ONE, overrides=changes), load())


def test_several_nodes_are_refused_with_the_reason_and_the_ways_out() -> None:
    """Each rank was its own server before, with the whole model on every Spark and one of them answering."""
    with pytest.raises(InputError) as refused:
        launch("launch.parallel={nodes: 2, tp: 2, pp: 1, ep: 1}")
    (problem,) = refused.value.problems
    assert problem.rule == "one-node-engine"
    for words in ("nodes = 2", "trtllm is served on one node only", "MPI", "nodes: 1", "llamacpp, sglang, vllm"):
        assert words in problem.message
    assert "\n" not in problem.message


def test_its_steps_are_counted_whether_a_profile_has_options_or_not() -> None:
    said = yaml.safe_load(launch().files[OPTIONS_FILE])
    assert said["enable_iter_perf_stats"] is True and said["kv_cache_config"]
    bare = launch("launch.extra_llm_api_options=null")
    assert yaml.safe_load(bare.files[OPTIONS_FILE]) == {"enable_iter_perf_stats": True}
    assert OPTIONS_FILE in bare.ranks[0].argv
    own = launch("launch.extra_llm_api_options={enable_iter_perf_stats: false}")
    assert yaml.safe_load(own.files[OPTIONS_FILE]) == {"enable_iter_perf_stats": False}
