"""Gemma 3 and 4: mostly sliding layers; Gemma 4's full layers have heads of their own, and some sizes have experts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts, layer_types, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Tensor, biased, matrix, norm, vector
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape

NORMS = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
BESIDE_EXPERTS = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
PATTERN = 6  # Gemma 3: every sixth layer sees all


def gemma3(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    at = "language_model.model" if vision else "model"
    window = text.about("attention").number("sliding_window")
    full, forward = attention(text, norms="head"), mlp(text)
    words = layer_types(text) or _pattern(text)
    layers = tuple(
        Layer(
            f"{at}.layers.{n}", replace(full, window=window) if word.startswith("sliding") else full, forward,
            full.hidden, NORMS,
        )
        for n, word in enumerate(words)
    )  # fmt: skip
    seen = tuple(_siglip(vision, full.hidden)) if vision else ()
    named: dict[str, Any] = {"embedding": f"{at}.embed_tokens", "last_norm": f"{at}.norm"}
    return Shape(layers=layers, vision=seen, **named, **{**ends(config), "tied": True})


def _pattern(text: Config) -> list[str]:
    every = text.about("layers").maybe("sliding_window_pattern") or PATTERN
    count = text.number("num_hidden_layers")
    return ["sliding_attention" if (n + 1) % every else "full_attention" for n in range(count)]


def _siglip(vision: Config, text_hidden: int) -> Iterator[Tensor]:
    facts, at = vision.about("vision"), "vision_tower.vision_model"
    hidden, inter = facts.number("hidden_size"), facts.number("intermediate_size")
    patch = facts.number("patch_size")
    positions = (facts.number("image_size") // patch) ** 2
    yield Tensor(f"{at}.embeddings.patch_embedding.weight", (hidden, 3, patch, patch), "vision", linear=False)
    yield vector(f"{at}.embeddings.patch_embedding.bias", hidden, "vision")
    yield Tensor(f"{at}.embeddings.position_embedding.weight", (positions, hidden), "vision", linear=False)
    for number in range(facts.number("num_hidden_layers")):
        block = f"{at}.encoder.layers.{number}"
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from biased(f"{block}.self_attn.{name}", hidden, hidden, "vision")
        yield from biased(f"{block}.mlp.fc1", inter, hidden, "vision")
        yield from biased(f"{block}.mlp.fc2", hidden, inter, "vision")
        for name in ("layer_norm1", "layer_norm2"):
            yield from norm(f"{block}.{name}", hidden, bias=True)
    yield from norm(f"{at}.post_layernorm", hidden, bias=True)
    yield from norm("multi_modal_projector.mm_soft_emb_norm", hidden)
    yield Tensor("multi_modal_projector.mm_input_projection_weight", (hidden, text_hidden), "vision", linear=False)


def gemma4(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    at = "model.language_model"
    if text.about("model").count("hidden_size_per_layer_input"):
        raise text.refusal(
            "hidden_size_per_layer_input: no checkpoint with per-layer embeddings was read by this reader"
        )
    full, sliding = _mixers(text)
    layers = []
    for number, word in enumerate(layer_types(text)):
        forward, extra = _forward(text, f"{at}.layers.{number}")
        scalar = vector(f"{at}.layers.{number}.layer_scalar", 1, "other")
        mixer = sliding if word.startswith("sliding") else full
        names = (*NORMS, *(BESIDE_EXPERTS if extra else ()))
        layers.append(Layer(f"{at}.layers.{number}", mixer, forward, full.hidden, names, (*extra, scalar)))
    seen = tuple(_tower(vision, full.hidden)) if vision else ()
    named: dict[str, Any] = {"embedding": f"{at}.embed_tokens", "last_norm": f"{at}.norm"}
    audio = ("an audio tower is not counted: no file that has one was read",) if config.section("audio_config") else ()
    return Shape(layers=tuple(layers), vision=seen, unknown=audio, **named, **ends(config))


def _mixers(text: Config) -> tuple[Attention, Attention]:
    facts = text.about("attention")
    sliding = attention(text, norms="head", window=facts.number("sliding_window"))
    full = replace(
        sliding,
        window=0,
        head_dim=facts.maybe("global_head_dim") or sliding.head_dim,
        kv_heads=facts.maybe("num_global_key_value_heads") or sliding.kv_heads,
        no_values=facts.flag("attention_k_eq_v"),
    )
    return full, sliding


def _forward(text: Config, at: str) -> tuple[Forward, tuple[Tensor, ...]]:
    dense = mlp(text)
    if not text.about("experts").flag("enable_moe_block"):
        return dense, ()
    parts = experts(text, shared=0, dense=dense, place="", router="router.proj")
    scales = (
        vector(f"{at}.router.scale", parts.hidden, "router"),
        vector(f"{at}.router.per_expert_scale", parts.routed, "router"),
    )
    return parts, scales


def _tower(vision: Config, text_hidden: int) -> Iterator[Tensor]:
    facts, at = vision.about("vision"), "model.vision_tower"
    hidden, inter = facts.number("hidden_size"), facts.number("intermediate_size")
    head = facts.maybe("head_dim") or hidden // facts.number("num_attention_heads")
    heads, kv = facts.number("num_attention_heads") * head, facts.number("num_key_value_heads") * head
    yield matrix(f"{at}.patch_embedder.input_proj", hidden, 3 * facts.number("patch_size") ** 2, "vision")
    positions = (2, facts.number("position_embedding_size"), hidden)
    yield Tensor(f"{at}.patch_embedder.position_embedding_table", positions, "vision", linear=False)
    for number in range(facts.number("num_hidden_layers")):
        block = f"{at}.encoder.layers.{number}"
        for name, rows, columns in (("q", heads, hidden), ("k", kv, hidden), ("v", kv, hidden), ("o", hidden, heads)):
            yield matrix(f"{block}.self_attn.{name}_proj.linear", rows, columns, "vision")
        for name in ("q_norm", "k_norm"):
            yield from norm(f"{block}.self_attn.{name}", head)
        for name, rows, columns in (("gate", inter, hidden), ("up", inter, hidden), ("down", hidden, inter)):
            yield matrix(f"{block}.mlp.{name}_proj.linear", rows, columns, "vision")
        for name in NORMS:
            yield from norm(f"{block}.{name}", hidden)
    if facts.flag("standardize"):
        yield vector(f"{at}.std_bias", hidden, "vision")
        yield vector(f"{at}.std_scale", hidden, "vision")
    yield matrix("model.embed_vision.embedding_projection", text_hidden, hidden, "vision")


READERS = (
    Reader(("Gemma3ForConditionalGeneration",), gemma3, "transformers models/gemma3"),
    Reader(("Gemma4ForConditionalGeneration",), gemma4, "transformers models/gemma4"),
)
