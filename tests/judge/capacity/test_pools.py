"""KV cache, state slots and the requests they allow, against logged pools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkloom.inputs.profile import Model, Parallel
from sparkloom.launch.engines import fit, requirements
from sparkloom.launch.memory import state, weights
from sparkloom.launch.memory.constants import GIB
from tests.judge.capacity.conftest import GLM, SUPER, SUPER_MTP, ULTRA, Maker


def test_kv_bytes_per_token_and_rank(view: Maker) -> None:
    """Two KV heads on four ranks: each rank holds a copy of one."""
    for name, expected in ((ULTRA, 3072), (SUPER, 2048), (GLM, 92 * 2 * 2 * 128)):
        asked = view(name)
        assert state.kv_bytes_per_token(asked.model, asked.parallel, 1.0) == expected, name
    asked = view(ULTRA)
    assert state.kv_bytes_per_token(asked.model, asked.parallel, 2.0) == 6144


def test_kv_tokens_of_ultra(view: Maker) -> None:
    plan = fit(view(ULTRA, "mem_fraction_static=0.90", "context_length=262144", "max_mamba_cache_size=48"))
    assert plan.memory["kv_tokens"].value == pytest.approx(774_547, rel=0.10)


def test_a_number_of_tokens_is_the_pool_where_memory_could_hold_more(view: Maker) -> None:
    """SGLang itself, told 4,096 tokens, allocated 4,096; the plan promised sixteen million."""
    words = ("mem_fraction_static=0.90", "max_mamba_cache_size=48")
    most, some = fit(view(ULTRA, *words)), fit(view(ULTRA, *words, "max_total_tokens=4096"))
    assert some.memory["kv_tokens"].value == 4096
    saved = float(most.memory["kv_pool_gib"].value or 0) - float(some.memory["kv_pool_gib"].value or 0)
    more = float(some.memory["headroom_gib"].value or 0) - float(most.memory["headroom_gib"].value or 0)
    assert saved == pytest.approx(more) and saved > 1
    over = fit(view(ULTRA, *words, "max_total_tokens=999999999"))
    assert over.memory["kv_tokens"].value == most.memory["kv_tokens"].value


def test_kv_tokens_of_super_when_the_engine_sizes_the_state_pool(view: Maker) -> None:
    plan = fit(view(SUPER, "mem_fraction_static=0.80", "context_length=524288", "max_mamba_cache_size="))
    assert plan.memory["kv_tokens"].value == pytest.approx(16.58e6, rel=0.10)


def test_state_pools(view: Maker) -> None:
    ultra = fit(view(ULTRA, "max_mamba_cache_size=48")).memory["state_pool_gib"].value
    assert ultra == pytest.approx(4.59 + 0.06, rel=0.02)
    plain = fit(view(SUPER, "max_mamba_cache_size=96")).memory["state_pool_gib"].value
    assert plain == pytest.approx(3.80, rel=0.02)
    drafting = fit(view(SUPER_MTP, "max_mamba_cache_size=96")).memory
    assert drafting["speculative_pool_gib"].value == pytest.approx(3.01, rel=0.02)


def test_states_are_split_over_the_ranks_and_kept_in_fp32(view: Maker) -> None:
    asked = view(ULTRA)
    whole = 48 * 256 * 64 * 128 * 4
    assert state.slot_bytes(asked.model, asked.parallel, 4.0) * 4 == pytest.approx(whole, rel=0.02)
    assert state.slot_bytes(asked.model, asked.parallel, 2.0) < state.slot_bytes(asked.model, asked.parallel, 4.0)


@pytest.mark.parametrize(
    ("name", "slots", "running"),
    [(ULTRA, 48, 16), (ULTRA, 18, 6), (SUPER, 96, 32), (SUPER_MTP, 96, 19), (SUPER_MTP, 160, 32)],
)
def test_state_slots_are_the_ceiling(view: Maker, name: str, slots: int, running: int) -> None:
    plan = fit(view(name, f"max_mamba_cache_size={slots}"))
    assert plan.limits["state_requests"].value == running
    assert plan.limits["max_running_requests"].value == running


def test_left_to_the_engine_ultra_runs_only_a_handful(view: Maker) -> None:
    """Reported as about 6, at a fraction that the post does not name: between 0.86 and 0.88 the rule gives 4 to 8."""
    counts = [
        int(fit(view(ULTRA, "max_mamba_cache_size=", f"mem_fraction_static={f}")).limits["state_requests"].value or 0)
        for f in (0.86, 0.87, 0.88)
    ]
    assert counts == sorted(counts)
    assert counts[0] <= 6 <= counts[2]
    assert counts[2] < 16


def test_without_prefix_cache_a_request_needs_one_slot(view: Maker) -> None:
    plan = fit(view(ULTRA, "disable_radix_cache=true", "max_running_requests=12", "max_mamba_cache_size="))
    assert plan.memory["state_slots"].value == 12
    assert plan.limits["max_running_requests"].value == 12


def test_ultra_at_512k_costs_three_quarters_of_a_gib_per_request(view: Maker) -> None:
    short, long = fit(view(ULTRA)), fit(view(ULTRA, "context_length=524288"))
    assert long.fits and short.fits
    assert long.memory["kv_tokens"].value == short.memory["kv_tokens"].value
    extra = float(long.memory["full_context_gib"].value or 0) - float(short.memory["full_context_gib"].value or 0)
    assert extra == pytest.approx(0.75)
    assert float(long.memory["full_context_gib"].value or 0) == pytest.approx(1.5)


def test_a_sliding_window_reads_less_than_it_pools(view: Maker) -> None:
    asked = view("google--gemma-4-26b-a4b-it")
    element = requirements(asked).kv_element
    few = state.kv_read_per_request(asked.model, asked.parallel, element, 1024)
    many = state.kv_read_per_request(asked.model, asked.parallel, element, 65536)
    assert few < many < 64 * few
    assert state.kv_bytes_per_token(asked.model, asked.parallel, element) * 65536 / GIB > many / GIB


VLLM = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"
GEMMA = "google--gemma-4-31b-it"


def test_a_verification_keeps_one_state_per_position_and_no_more(view: Maker) -> None:
    """vLLM keeps 1 + num_speculative_tokens states for a request: 4 at 3, which is what `drafts` counts already."""
    memory = fit(view(VLLM)).memory
    slot = float(memory["state_mib_per_slot"].value or 0) / 1024
    assert memory["state_pool_gib"].value == pytest.approx(4 * (1 + 3) * slot)


def test_a_sliding_layer_keeps_its_window_and_what_is_prefilled(view: Maker) -> None:
    asked = view(GEMMA)
    model, window = asked.model, asked.model.attention.window or 0
    assert model.layers.sliding > 3 * model.layers.attention and window
    flags = {"max_model_len": 131072, "gpu_memory_utilization": 0.8, "max_num_batched_tokens": 2048}
    engine = replace(asked, engine="vllm", flags=flags)
    element = 2.0
    whole = state.kv_bytes_per_token(model, asked.parallel, element, pool=False)
    full = model.layers.attention * state.kv_bytes_per_layer(model, asked.tp, element)
    expected = full * 131072 + (whole - full) * (window + 2048)
    kept = float(fit(engine).memory["full_context_gib"].value or 0)
    assert kept == pytest.approx(expected / GIB)
    assert kept < 0.4 * whole * 131072 / GIB
    everything = fit(replace(engine, flags={**flags, "disable_hybrid_kv_cache_manager": True})).memory
    assert everything["full_context_gib"].value == pytest.approx(whole * 131072 / GIB)


def test_an_int4_checkpoint_weighs_what_its_publisher_says() -> None:
    """Qwen3-32B-AWQ, groups of 128: 19.3 GB on the hub."""
    qwen = Model.model_validate(
        {
            "id": "Qwen/Qwen3-32B-AWQ",
            "architecture": "Qwen3ForCausalLM",
            "parameters_b": 32.8,
            "active_b": 32.8,
            "context": 40960,
            "hidden": 5120,
            "vocab": 151936,
            "dense_inter": 25600,
            "layers": {"attention": 64, "dense": 64},
            "attention": {"q_heads": 64, "kv_heads": 8, "head_dim": 128},
            "precision": {"dense": "int4", "attention": "int4"},
            "checkpoint": {"packing": "compressed-tensors"},
            "source": "config.json",
        }
    )
    assert weights.gib(qwen, Parallel(nodes=1, tp=1)) * GIB / 1e9 == pytest.approx(19.3, rel=0.01)
