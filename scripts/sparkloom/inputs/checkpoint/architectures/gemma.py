"""Gemma 3 and 4: mostly sliding layers; Gemma 4's full layers have heads of their own, and some sizes have experts."""

from __future__ import annotations

from dataclasses import replace

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Forward
from sparkloom.inputs.checkpoint.shape import Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor, vector

NORMS = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
BESIDE_EXPERTS = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
PATTERN = 6  # Gemma 3: every sixth layer sees all


@reads("Gemma3ForConditionalGeneration", source="transformers models/gemma3")
def gemma3(config: Config) -> Shape:
    text = config.text
    at = "language_model.model" if config.section("vision_config") else "model"
    full, forward = common.attention(text, norms="head"), common.mlp(text)
    sliding = replace(full, window=text.about("attention").number("sliding_window"))
    interval = text.about("layers").maybe("sliding_window_pattern") or PATTERN
    words = common.layer_types(text) or common.every(text, interval, "sliding_attention")
    layers = common.layers(at, ((sliding if word.startswith("sliding") else full, forward) for word in words), NORMS)
    return common.model(config, at, layers, vision=tensors.tower(config, "siglip", text_hidden=full.hidden), tied=True)


@reads("Gemma4ForConditionalGeneration", source="transformers models/gemma4")
def gemma4(config: Config) -> Shape:
    text, at = config.text, "model.language_model"
    if text.about("model").count("hidden_size_per_layer_input"):
        message = "hidden_size_per_layer_input: no checkpoint with per-layer embeddings was read by this reader"
        raise text.refusal(message)
    full, sliding = _mixers(text)
    layers = []
    for number, word in enumerate(common.layer_types(text)):
        forward, extra = _forward(text, f"{at}.layers.{number}")
        scalar = vector(f"{at}.layers.{number}.layer_scalar", 1, "other")
        mixer = sliding if word.startswith("sliding") else full
        names = (*NORMS, *(BESIDE_EXPERTS if extra else ()))
        layers.append(Layer(f"{at}.layers.{number}", mixer, forward, names, (*extra, scalar)))
    audio = ("an audio tower is not counted: no file that has one was read",) if config.section("audio_config") else ()
    tower = tensors.tower(config, "gemma4", text_hidden=full.hidden)
    return common.model(config, at, layers, vision=tower, unknown=audio)


def _mixers(text: Config) -> tuple[Attention, Attention]:
    facts = text.about("attention")
    sliding = common.attention(text, norms="head", window=facts.number("sliding_window"))
    full = replace(
        sliding,
        window=0,
        head_dim=facts.maybe("global_head_dim") or sliding.head_dim,
        kv_heads=facts.maybe("num_global_key_value_heads") or sliding.kv_heads,
        no_values=facts.flag("attention_k_eq_v"),
    )
    return full, sliding


def _forward(text: Config, at: str) -> tuple[Forward, tuple[Tensor, ...]]:
    dense = common.mlp(text)
    if not text.about("experts").flag("enable_moe_block"):
        return dense, ()
    parts = common.experts(text, shared=0, dense=dense, place="", router="router.proj")
    scales = (
        vector(f"{at}.router.scale", parts.hidden, "router"),
        vector(f"{at}.router.per_expert_scale", parts.routed, "router"),
    )
    return parts, scales
