"""What an engine is told so that it keeps to a share of a Spark, whoever else is there and started first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkloom import case
from sparkloom.launch import engines
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.view import LaunchView

SGLANG, HYBRID = "radixark--qwen3.8-27b-nvfp4", "radixark--qwen3.8-flash-next-nvfp4"
VLLM, TRTLLM = "chankhavu--nemotron-cascade-2-30b-a3b-nvfp4", "nvidia--nemotron-3-super-120b-a12b-nvfp4--trtllm-1node"
RPC = "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"
START = 1.0  # GiB: an engine on one Spark, before its first weight


def view(profile: str) -> LaunchView:
    return case.judge(profile).launch.view()


def parts(fit: Fit) -> float:
    names = ("weights_gib_per_rank", "kv_pool_gib", "state_pool_gib", "speculative_pool_gib", "draft_gib", "graphs_gib")
    return sum(float(fit.memory[name].value or 0) for name in names if name in fit.memory)


@pytest.mark.parametrize("profile", [SGLANG, VLLM])
@pytest.mark.parametrize("gib", [45.0, 60.0, 90.0])
def test_all_that_is_planned_is_within_the_share(profile: str, gib: float) -> None:
    shared, told = engines.shared(view(profile), gib)
    fit = engines.fit(shared)
    assert told and parts(fit) <= gib
    if fit.fits:
        assert parts(fit) + float(fit.memory["headroom_gib"].value or 0) <= gib + 0.01 or profile == VLLM


@pytest.mark.parametrize("profile", [SGLANG, VLLM])
def test_a_larger_share_is_more_room_for_requests(profile: str) -> None:
    """Cache and states together: vLLM takes states out of the cache where not all of them have room."""
    rooms = []
    for gib in (50.0, 60.0, 75.0, 90.0):
        memory = engines.fit(engines.shared(view(profile), gib)[0]).memory
        rooms.append(sum(float(memory[name].value or 0) for name in ("kv_pool_gib", "state_pool_gib")))
    assert rooms == sorted(rooms) and rooms[0] < rooms[-1]


def test_sglang_takes_no_more_when_it_starts_first() -> None:
    """Its fraction alone would: it is of what is free, and the others have not begun."""
    launch = view(SGLANG)
    shared, told = engines.shared(launch, 51.0)
    roomy = replace(shared, platform=replace(shared.platform, measured_free_gib=(113.0, 113.0)))
    planned, first = engines.fit(shared), engines.fit(roomy)
    assert parts(first) == pytest.approx(parts(planned), abs=0.05)
    untold = replace(roomy, flags={**roomy.flags, "max_total_tokens": None, "max_mamba_cache_size": None})
    assert parts(engines.fit(untold)) > parts(planned) + 10
    assert {"mem_fraction_static", "max_total_tokens"} <= set(told)


def test_vllm_s_fraction_is_of_the_whole_machine_less_what_lies_beside_it() -> None:
    launch = view(VLLM)
    _, told = engines.shared(launch, 60.0)
    fraction = told["gpu_memory_utilization"]
    assert (
        isinstance(fraction, float) and fraction * launch.platform.usable_gib + START <= 60.0 < fraction * 121.6 + 1.2
    )


def test_tensorrt_llm_is_told_tokens_and_keeps_its_other_options() -> None:
    launch = view(TRTLLM)
    _, told = engines.shared(launch, 100.0)
    options = told["extra_llm_api_options"]
    assert isinstance(options, dict) and options["kv_cache_config"]["max_tokens"] > 0
    before = launch.mapping("extra_llm_api_options")
    assert {key: value for key, value in options.items() if key != "kv_cache_config"} == {
        key: value for key, value in before.items() if key != "kv_cache_config"
    }


def test_llamacpp_needs_to_be_told_nothing() -> None:
    assert engines.shared(view(RPC), 100.0)[1] == {}


@pytest.mark.parametrize("profile", [SGLANG, VLLM, TRTLLM, RPC, HYBRID])
def test_a_share_that_holds_no_model_is_refused(profile: str) -> None:
    assert engines.fit(engines.shared(view(profile), 6.0)[0]).fits is False
