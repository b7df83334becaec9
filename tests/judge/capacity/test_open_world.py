"""Models and splits of this year: sparse and compressed attention, parts that live elsewhere, copies (dp)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from sparkloom.inputs.profile import Model, Parallel
from sparkloom.judge.capacity import search, traffic
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch.engines import fit
from sparkloom.launch.memory import state, weights
from sparkloom.launch.view import ModelView

GB = 1e9
ALONE = Parallel(nodes=1, tp=1)
# Published configurations, from memory; what is asserted are the publishers' own totals.
V4_FLASH: dict[str, Any] = {
    "id": "deepseek-ai/DeepSeek-V4-Flash",
    "architecture": "DeepseekV4ForCausalLM",
    "parameters_b": 284,
    "active_b": 13,
    "context": 1_048_576,
    "hidden": 4096,
    "vocab": 129_280,
    "layers": {"sliding": 2, "compressed": {"4": 21, "128": 20}, "moe": 43},
    "attention": {
        "q_heads": 64, "kv_heads": 1, "head_dim": 512, "kv_rank": 512, "rope_dim": 64, "q_rank": 1024, "o_rank": 1024,
        "o_groups": 8, "window": 128, "indexer": {"heads": 64, "head_dim": 128, "top_k": 512, "ratio": 4},
    },
    "experts": {"routed": 256, "active": 6, "inter": 2048, "shared_inter": 2048},
    "precision": {"experts": "mxfp4", "shared": "fp8-b128", "attention": "fp8-b128", "embedding": "bf16"},
    "checkpoint": {"packing": "fp8"},
    "source": "published configuration, from memory",
}  # fmt: skip
V32: dict[str, Any] = {
    "id": "deepseek-ai/DeepSeek-V3.2",
    "architecture": "DeepseekV32ForCausalLM",
    "parameters_b": 671,
    "active_b": 37,
    "context": 163_840,
    "hidden": 7168,
    "vocab": 129_280,
    "layers": {"sparse": 61, "moe": 58, "dense": 3},
    "attention": {
        "q_heads": 128, "kv_heads": 128, "head_dim": 192, "v_head_dim": 128, "kv_rank": 576, "rope_dim": 64,
        "q_rank": 1536, "indexer": {"heads": 64, "head_dim": 128, "top_k": 2048},
    },
    "experts": {"routed": 256, "active": 8, "inter": 2048, "shared_inter": 2048},
    "dense_inter": 18432,
    "precision": {"experts": "bf16", "shared": "bf16", "dense": "bf16", "attention": "bf16"},
    "checkpoint": {"packing": "fp8"},
    "source": "published configuration, from memory",
}  # fmt: skip


def changed(facts: dict[str, Any], **parts: Any) -> Model:
    return Model.model_validate({**facts, **parts})


def test_parameters_of_the_new_kinds_are_the_publishers() -> None:
    """In bf16 every parameter is two bytes, so bytes are parameters."""
    plain = {"experts": "bf16", "shared": "bf16", "dense": "bf16", "attention": "bf16"}
    for facts in (V4_FLASH, V32):
        model = changed(facts, precision=plain)
        billions = weights.gib(model, ALONE) * 2**30 / 2 / GB
        assert billions == pytest.approx(model.parameters_b, rel=0.01), model.id


def test_a_compressed_cache_is_a_fraction_of_a_latent_one() -> None:
    """584 bytes an entry (448 fp8, 64 bf16, 8 of scales) and 132 of an indexer's key, as vLLM lays them out."""
    v4 = changed(V4_FLASH)
    per_token = 584 * (21 / 4 + 20 / 128) + 21 * 132 / 4
    assert state.kv_of_request(v4, ALONE, 1.0, 1_000_000) == pytest.approx(per_token * 1e6 + 43 * 584 * 128)
    v32 = changed(V32)
    assert state.kv_bytes_per_token(v32, ALONE, 1.0) == 61 * (656 + 132)
    assert state.kv_of_request(v4, ALONE, 1.0, 1e6) < 0.1 * state.kv_of_request(v32, ALONE, 1.0, 1e6)


def test_sparse_attention_reads_what_its_indexer_chose() -> None:
    v32 = changed(V32)
    short, long = (state.kv_read_per_request(v32, ALONE, 1.0, n) for n in (2048, 100_000))
    assert short == state.kv_of_request(v32, ALONE, 1.0, 2048)
    assert long == pytest.approx(61 * (656 * 2048 + 132 * 100_000))


def test_layers_that_share_an_indexer_keep_fewer_keys() -> None:
    own = {**V32["attention"]["indexer"], "layers": 16}
    shared = changed(V32, attention={**V32["attention"], "indexer": own})
    assert state.kv_bytes_per_token(shared, ALONE, 1.0) == 61 * 656 + 16 * 132


@pytest.mark.parametrize(
    ("attention", "layers", "said"),
    [
        ({}, {"sparse": 4}, "attention.indexer is missing"),
        ({"indexer": {"heads": 1, "head_dim": 128, "top_k": 8, "ratio": 8}}, {"compressed": {"4": 2}}, "which has 4"),
        ({}, {"compressed": {"four": 2}}, "'four' is no ratio"),
        ({}, {"compressed": {"1": 2}}, "'1' is no ratio"),
    ],
)
def test_kinds_and_their_parts_belong_together(attention: dict[str, Any], layers: dict[str, Any], said: str) -> None:
    plain = {"q_heads": 64, "kv_heads": 1, "head_dim": 512}
    with pytest.raises(ValidationError, match=said):
        changed(V4_FLASH, attention={**plain, **attention}, layers={**layers, "moe": 43})


def test_a_value_head_of_its_own_width() -> None:
    """MiMo-V2: keys of 192, values of 128; its sliding layers have other heads."""
    heads = {"q_heads": 64, "kv_heads": 4, "head_dim": 192, "v_head_dim": 128, "window": 128}
    own = {"sliding_kv_heads": 8, "sliding_head_dim": 192, "sliding_v_head_dim": 128}
    model = changed(V4_FLASH, attention={**heads, **own}, layers={"attention": 9, "sliding": 39, "moe": 43})
    assert state.kv_of_request(model, ALONE, 2.0, 1000) == 9 * 4 * 320 * 2 * 1000 + 39 * 8 * 320 * 2 * 128


# --- parts that live elsewhere


def tables(lives: str) -> Model:
    """An n-gram table of 47.7 GB beside a dense model of 64.1."""
    return Model.model_validate(
        {
            "id": "a/b", "architecture": "X", "parameters_b": 56, "active_b": 32, "context": 4096, "hidden": 5120,
            "vocab": 151_936, "layers": {"attention": 64, "dense": 64},
            "attention": {"q_heads": 64, "kv_heads": 8, "head_dim": 128}, "dense_inter": 25_600,
            "precision": {"attention": "bf16", "dense": "bf16"},
            "checkpoint": {"packing": "bf16", "size_gb": 64.1 + 47.7},
            "parts": {"n-gram table": {"size_gb": 47.7, "lives": lives}}, "source": "made up",
        }
    )  # fmt: skip


def test_a_table_on_disk_is_downloaded_and_takes_no_memory() -> None:
    on_disk, held = tables("disk"), tables("memory")
    gap = (weights.gib(held, ALONE) - weights.gib(on_disk, ALONE)) * 2**30 / GB
    assert gap == pytest.approx(47.7)
    assert on_disk.loaded_gb == pytest.approx(64.1) and held.loaded_gb == pytest.approx(111.8)
    assert weights.disagreement(on_disk) is None and weights.disagreement(held) is None
    needs = ModelView("vllm", model=on_disk, flags={"max_model_len": 65536, "max_num_seqs": 1})
    assert fit(needs).fits and fit(replace(needs, model=held)).fits is False


def test_no_step_reads_a_table() -> None:
    views = [ModelView("vllm", model=tables(lives), flags={"max_model_len": 4096}) for lives in ("disk", "memory")]
    assert Speed(views[0]).bound(1) == Speed(views[1]).bound(1)


def test_parts_are_not_larger_than_the_checkpoint() -> None:
    with pytest.raises(ValidationError, match=r"more than checkpoint\.size_gb"):
        tables("disk").model_validate({**tables("disk").model_dump(), "checkpoint": {"packing": "bf16", "size_gb": 40}})


def test_a_draft_of_known_size_is_counted() -> None:
    draft = {"id": "a/draft", "size_gb": 3.2}
    model = Model.model_validate({**tables("disk").model_dump(exclude={"draft"}), "draft": draft})
    flags = {"speculative_config": {"method": "dflash", "model": "a/draft", "num_speculative_tokens": 4}}
    plan = fit(ModelView("vllm", model=model, flags={**flags, "max_model_len": 4096}))
    assert float(plan.memory["draft_gib"].value or 0) == pytest.approx(3.2e9 / 2**30)


# --- whole copies


def test_copies_share_experts_and_nothing_else() -> None:
    model = changed(V32)
    groups = {
        split: {g.name: g.bytes for g in weights.tensors(model, parallel)}
        for split, parallel in {
            "tp4": Parallel(nodes=4, tp=4, ep=4),
            "dp4": Parallel(nodes=4, tp=1, dp=4, ep=4),
            "apart": Parallel(nodes=4, tp=1, dp=4),
        }.items()
    }
    assert groups["dp4"]["experts"] == groups["tp4"]["experts"] == groups["apart"]["experts"]
    assert groups["dp4"]["sparse attention"] == groups["apart"]["sparse attention"] > groups["tp4"]["sparse attention"]


def test_copies_serve_their_own_requests() -> None:
    """Four copies with whole weights each do four times the work of one."""
    one = ModelView("vllm", model=tables("disk"), flags={"max_model_len": 4096})
    four = one.split(Parallel(nodes=4, tp=1, dp=4))
    assert Speed(four).predicted(8) == pytest.approx(4 * (Speed(one).predicted(2) or 0))
    assert traffic.collectives(four) == 0


def test_experts_dealt_over_copies_cost_two_exchanges_a_layer() -> None:
    view = ModelView("vllm", model=changed(V32)).split(Parallel(nodes=4, tp=1, dp=4, ep=4))
    assert traffic.collectives(view) == 2 * 58


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({"nodes": 4, "tp": 2, "dp": 4}, r"tp 2 x pp 1 x dp 4 = 8 ranks for 4 nodes"),
        ({"nodes": 4, "tp": 2, "dp": 2, "ep": 3}, "ep 3 does not divide tp x dp = 4"),
        ({"nodes": 3, "tp": 2}, r"tp 2 x pp 1 = 2 ranks for 3 nodes"),
        ({"nodes": 9, "tp": 9}, "less than or equal to 8"),
    ],
)
def test_ranks_fill_the_nodes(split: dict[str, int], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Parallel(**split)


@pytest.mark.parametrize("nodes", range(1, 9))
def test_one_spark_to_eight(nodes: int) -> None:
    """Every count has a prediction, and more Sparks are never slower at their best."""
    view = ModelView("vllm", model=tables("disk"), flags={"max_model_len": 4096})
    split = view.split(Parallel(nodes=nodes, tp=1, pp=nodes))
    speed = Speed(split).figures()
    assert all(figure.value for figure in speed.values())
    assert float(fit(split).memory["weights_gib_per_rank"].value or 0) < 72


def test_more_nodes_are_proposed_with_as_many_copies() -> None:
    heavy = changed(V32, precision={"experts": "nvfp4", "attention": "bf16"})
    view = ModelView("vllm", model=heavy, flags={"max_model_len": 4096}).split(Parallel(nodes=2, tp=1, dp=2, ep=2))
    change = search.smallest(view, nodes=8)
    assert change is not None and "launch.parallel.dp=2" in change.overrides
