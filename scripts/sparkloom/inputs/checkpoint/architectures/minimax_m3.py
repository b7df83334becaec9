"""MiniMax M3: a few dense layers, then experts; sparse attention that chooses blocks by keys of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Choice, Tensor, biased, matrix, norm
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def read(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    before = "language_model." if vision else ""
    at, count = f"{before}model", text.about("layers").number("num_hidden_layers")
    routed = text.about("layers").per_layer(count, "moe_layer_freq") or [1] * count
    sparse = text.section("sparse_attention_config")
    chooses = sparse.about("sparse").per_layer(count, "sparse_attention_freq") if sparse else [0] * count
    mixer = attention(text, norms="head", gate=text.about("attention").flag("attention_output_gate"))
    layers = []
    for number in range(count):
        place = f"{at}.layers.{number}"
        forward = (
            experts(
                text, shared=text.about("experts").count("shared_intermediate_size"), router_bias=True,
                place="block_sparse_moe", names=("w1", "w3", "w2"),
            )
            if routed[number]
            else mlp(text, "dense_intermediate_size")
        )  # fmt: skip
        choosing = sparse if sparse and chooses[number] else None
        more = tuple(_indexer(place, choosing, mixer.hidden)) if choosing else ()
        own = replace(mixer, choice=_choice(choosing)) if choosing else mixer
        layers.append(Layer(place, own, forward, mixer.hidden, more=more))
    named: dict[str, Any] = {"embedding": f"{at}.embed_tokens", "last_norm": f"{at}.norm", "head": f"{before}lm_head"}
    seen = tuple(_tower(config, vision, mixer.hidden)) if vision else ()
    return Shape(layers=tuple(layers), vision=seen, unknown=_drafts(text), **named, **ends(config))


def _drafts(text: Config) -> tuple[str, ...]:
    named = text.about("mtp").count("num_mtp_modules")
    return (f"config.json names {named} draft module(s); whether the checkpoint holds them only its index says",)


def _choice(sparse: Config) -> Choice:
    facts = sparse.about("sparse")
    return Choice(
        facts.number("sparse_num_index_heads"), facts.number("sparse_index_dim"), facts.number("sparse_topk_blocks"),
        facts.number("sparse_block_size"),
    )  # fmt: skip


def _indexer(at: str, sparse: Config, hidden: int) -> Iterator[Tensor]:
    facts = sparse.about("sparse")
    heads, width = facts.number("sparse_num_index_heads"), facts.number("sparse_index_dim")
    yield matrix(f"{at}.self_attn.index_q_proj", heads * width, hidden, "attention")
    yield matrix(f"{at}.self_attn.index_k_proj", width, hidden, "attention")
    yield from norm(f"{at}.self_attn.index_q_norm", width)
    yield from norm(f"{at}.self_attn.index_k_norm", width)


def _tower(config: Config, vision: Config, text_hidden: int) -> Iterator[Tensor]:
    facts, at = vision.about("vision"), "vision_tower.vision_model"
    hidden, inter = facts.number("hidden_size"), facts.number("intermediate_size")
    merging = config.section("img_token_compression_config")
    squared = merging.about("vision").number("spatial_merge_size") ** 2 if merging else 4
    frames = merging.about("vision").number("temporal_patch_size") if merging else 2
    patch, wide = facts.number("patch_size"), config.about("vision").number("projector_hidden_size")
    shape = (hidden, 3, frames, patch, patch)
    yield Tensor(f"{at}.embeddings.patch_embedding.weight", shape, "vision", linear=False)
    yield from norm(f"{at}.pre_layrnorm", hidden, bias=True)
    for number in range(facts.number("num_hidden_layers")):
        block = f"{at}.encoder.layers.{number}"
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from biased(f"{block}.self_attn.{name}", hidden, hidden, "vision")
        yield from biased(f"{block}.mlp.fc1", inter, hidden, "vision")
        yield from biased(f"{block}.mlp.fc2", hidden, inter, "vision")
        for name in ("layer_norm1", "layer_norm2"):
            yield from norm(f"{block}.{name}", hidden, bias=True)
    yield from biased("multi_modal_projector.linear_1", wide, hidden, "vision")
    yield from biased("multi_modal_projector.linear_2", text_hidden, wide, "vision")
    yield from biased("patch_merge_mlp.linear_1", wide, text_hidden * squared, "vision")
    yield from biased("patch_merge_mlp.linear_2", text_hidden, wide, "vision")


READERS = (
    Reader(
        ("MiniMaxM3SparseForConditionalGeneration",),
        read,
        "transformers models/minimax_m3_vl; the published quantized_layers list",
    ),
)
