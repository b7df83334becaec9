"""Whatever stands behind a flag, a plan comes out: refusing nonsense is the flag check's task."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkloom.inputs import profile
from sparkloom.judge.capacity.verdict import of_view
from sparkloom.launch.view import LaunchView
from tests.judge.capacity.conftest import make
from tests.later import thrown

FLAGS = (
    "mem_fraction_static",
    "context_length",
    "max_mamba_cache_size",
    "max_running_requests",
    "cuda_graph_max_bs",
    "kv_cache_dtype",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_num_draft_tokens",
    "speculative_eagle_topk",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_seqs",
    "speculative_config",
    "extra_llm_api_options",
    "max_seq_len",
    "ctx_size",
    "parallel",
)
WORDS = st.sampled_from(["", "auto", "fp8_e4m3", "NEXTN", "nonsense"])
NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(-3, 300), st.floats(0, 1))
PLAIN = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS)
KEYS = st.sampled_from(["num_speculative_tokens", "num_nextn_predict_layers", "free_gpu_memory_fraction", "dtype"])
INNER = st.one_of(PLAIN, st.dictionaries(KEYS, PLAIN))
NESTED = st.dictionaries(st.one_of(KEYS, st.sampled_from(["kv_cache_config", "speculative_config"])), INNER)
VALUES = st.one_of(PLAIN, NESTED, st.lists(NUMBERS, max_size=2))


@cache
def base(name: str) -> LaunchView:
    return make(name)


@pytest.mark.parametrize("engine", ["sglang", "vllm", "trtllm", "llamacpp"])
@settings(max_examples=thrown(150))
@given(flags=st.dictionaries(st.sampled_from(FLAGS), VALUES, max_size=6))
def test_no_flag_breaks_a_plan(engine: str, flags: dict[str, profile.FlagValue]) -> None:
    start = base("nvidia--nemotron-3-super-120b-a12b-nvfp4")
    data = of_view(replace(start, engine=engine, flags={**start.flags, **flags}), 4).as_dict()
    assert data["fits"] in (True, False) or data["reason"].startswith("uncertain: ")
    assert data["speed"]["bound_n1_tok_s"] > 0
    assert all(value is None or value >= 0 for value in data["limits"].values()), data["limits"]
