"""What starts, what is refused, and the smallest change that helps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkloom.inputs.profile import Model, Parallel
from sparkloom.judge.capacity import search
from sparkloom.launch.engines import fit
from sparkloom.launch.view import ModelView
from tests.judge.capacity.conftest import SUPER, ULTRA, Maker
from tests.places import REPO

GLM5 = Model.model_validate(
    {
        "id": "nvidia/GLM-5-NVFP4",
        "architecture": "GlmMoeDsaForCausalLM",
        "parameters_b": 744,
        "active_b": 40,
        "context": 202752,
        "hidden": 6144,
        "vocab": 154880,
        "layers": {"attention": 78, "moe": 75, "dense": 3},
        "attention": {"q_heads": 64, "kv_heads": 64, "head_dim": 256, "kv_rank": 576, "q_rank": 2048},
        "experts": {"routed": 256, "active": 8, "inter": 2048, "shared_inter": 2048},
        "dense_inter": 12288,
        "precision": {"experts": "nvfp4", "shared": "bf16", "dense": "bf16", "attention": "bf16"},
        "checkpoint": {"packing": "modelopt"},
        "source": "published configuration, from memory",
    }
)


def glm5(nodes: int = 4) -> ModelView:
    flags = {"mem_fraction_static": 0.9, "kv_cache_dtype": "fp8_e4m3", "cuda_graph_max_bs": 8}
    return ModelView("sglang", nodes=nodes, tp=nodes, model=GLM5, flags=flags)


@pytest.mark.parametrize(
    ("fraction", "starts"), [(0, False), (0.80, False), (0.85, False), (0.88, True), (0.90, True), (0.92, True)]
)
def test_the_floor_of_ultra(view: Maker, fraction: float, starts: bool) -> None:
    plan = fit(view(ULTRA, f"mem_fraction_static={fraction}", "max_mamba_cache_size=48"))
    assert plan.fits is starts, plan.reason
    assert float(plan.limits["mem_fraction_static_floor"].value or 0) == pytest.approx(0.88, abs=0.005)
    if not starts:
        assert "mem_fraction_static" in plan.reason


GGUF = "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"


def test_the_smallest_change_for_ultra_is_the_fraction(view: Maker) -> None:
    refused = view(ULTRA, "mem_fraction_static=0.85")
    change = search.smallest(refused, nodes=4)
    assert change is not None
    assert change.overrides == ("launch.mem_fraction_static=0.88",)
    assert fit(change.view).fits
    one_less = refused.with_flag("mem_fraction_static", 0.87)
    assert fit(one_less).fits is False


def test_more_slots_than_any_fraction_can_pay_for(view: Maker) -> None:
    change = search.smallest(view(ULTRA, "max_mamba_cache_size=200"), nodes=4)
    assert change is not None
    assert any("max_mamba_cache_size" in text for text in change.overrides)
    assert fit(change.view).fits


def test_glm5_does_not_fit_four_nodes_at_any_fraction() -> None:
    for percent in range(50, 96):
        assert fit(glm5().with_flag("mem_fraction_static", percent / 100)).fits is False
    assert "weights need" in fit(glm5()).reason
    change = search.smallest(glm5(), nodes=4)
    assert change is not None
    assert "8 nodes instead of 4" in change.text
    assert "this inventory has 4" in change.text


def test_nothing_helps_a_model_that_eight_nodes_cannot_hold() -> None:
    huge = GLM5.model_copy(update={"layers": GLM5.layers.model_copy(update={"moe": 400})})
    assert search.smallest(replace(glm5(), model=huge), nodes=8) is None


def test_too_much_for_the_pool_starves_the_host(view: Maker) -> None:
    plan = fit(view(SUPER, "mem_fraction_static=0.99"))
    assert plan.fits is False
    assert "stay free" in plan.reason


def test_drafting_costs_memory(view: Maker) -> None:
    with_draft = fit(view("nvidia--glm-4.7-nvfp4--mtp"))
    assert with_draft.fits
    assert float(with_draft.memory["draft_gib"].value or 0) > 1


def test_one_spark_with_vllm_and_with_tensorrt_llm(view: Maker) -> None:
    one = "nvidia--nemotron-3-super-120b-a12b-nvfp4"
    for name in (f"{one}--vllm-1node", f"{one}--trtllm-1node"):
        plan = fit(view(name))
        assert plan.fits, plan.reason
        assert float(plan.memory["kv_tokens"].value or 0) > 1_000_000
    greedy = view(f"{one}--vllm-1node", "gpu_memory_utilization=0.98")
    assert "refuses to start" in fit(greedy).reason
    change = search.smallest(greedy, nodes=1)
    assert change is not None and "gpu_memory_utilization" in change.overrides[0]


def test_a_context_that_one_spark_cannot_hold_is_shortened(view: Maker) -> None:
    long = view("nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node", "max_model_len=16000000")
    assert fit(long).fits is False
    change = search.smallest(long, nodes=1)
    assert change is not None
    assert "max_model_len" in change.text


def test_layers_of_a_gguf_on_two_sparks(view: Maker) -> None:
    plan = fit(view(GGUF))
    assert plan.fits, plan.reason
    assert plan.limits["max_running_requests"].value == 4  # what llama-server takes when nobody says


@pytest.mark.parametrize(
    ("changes", "requests", "longest"),
    [
        ((), 4, 32768),
        (("np=2",), 2, 16384),
        (("np=2", "kv_unified=true"), 2, 32768),
        (("np=-1",), 4, 32768),
    ],
)
def test_llamacpps_cache_has_the_tokens_that_it_was_told(
    view: Maker, changes: tuple[str, ...], requests: int, longest: int
) -> None:
    """It was said to fill what is left (2,380,469 tokens), for one request."""
    plan = fit(view(GGUF, *changes))
    assert plan.memory["kv_tokens"].value == 32768
    assert plan.limits["max_running_requests"].value == requests
    assert plan.limits["longest_request_tokens"].value == longest


def test_a_cache_that_llamacpp_cannot_allocate_whole_is_refused(view: Maker) -> None:
    """Eight parts of it would each be short enough; the whole is what is allocated."""
    plan = fit(view(GGUF, "ctx_size=16000000", "np=8"))
    assert plan.fits is False and "asks for 16,000,000" in plan.reason, plan.reason


def test_on_half_the_nodes_ultra_is_refused(view: Maker) -> None:
    two = view(ULTRA).split(Parallel(nodes=2, tp=2, ep=2))
    plan = fit(two)
    assert plan.fits is False
    change = search.smallest(two, nodes=4)
    assert change is not None
    assert "4 nodes instead of 2" in change.text


def test_vllm_told_the_bytes_of_its_cache_takes_no_more(view: Maker) -> None:
    """vLLM 0.32.0, two ranks, the same profile: "CPU KV cache size: 65,536 tokens"."""
    name = str(REPO / "testbed/make/real/profiles/tiny-dense--vllm-2node.yml")
    told = fit(view(name))
    assert told.fits and told.memory["kv_tokens"].value == 65536
    much = fit(view(name, "kv_cache_memory_bytes=110G"))
    assert much.fits is False and "kv_cache_memory_bytes" in much.reason
