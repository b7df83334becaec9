"""An architecture that no reader knows: the usual words of config.json, and the tensors' own shapes."""

from __future__ import annotations

import re
from collections import Counter

from sparkloom.base.errors import InputError
from sparkloom.inputs.checkpoint import headers
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.headers import Contents, Stored
from sparkloom.inputs.checkpoint.parts import Attention, Experts, Forward, Latent, Mixer, Mlp
from sparkloom.inputs.checkpoint.shape import Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Group, Tensor

VOCABULARY = re.compile(r"(embed_tokens|word_embeddings|embeddings|wte|tok_embeddings)\.weight$")


def read(config: Config, contents: Contents | None) -> Shape:
    if contents is None or not contents.tensors:
        names = ", ".join(map(str, config.items("architectures")))
        message = (
            f"no reader knows '{names}', and there is nothing else to read it from: the safetensors index and headers "
            "are needed (a folder with the weights, or the hub)"
        )
        raise InputError.single(config.file, message, rule="unknown-architecture")
    text = config.text
    table = next((t for t in contents.tensors if VOCABULARY.search(t.name) and len(t.shape) == 2), None)
    if table is None:
        raise config.refusal("no tensor is an embedding of words: no language model that is known here")
    vocab, hidden = table.shape
    by_layer = _by_layer(contents)
    count = text.about("layers").maybe("num_hidden_layers", "n_layer", "num_layers") or len(by_layer)
    layers = tuple(_layer(text, number, by_layer.get(number, []), hidden) for number in range(count))
    context = text.about("model").maybe(
        "max_position_embeddings", "model_max_length", "max_sequence_length", "n_positions"
    )
    return Shape(
        hidden=hidden,
        vocab=vocab,
        context=context or 4096,
        layers=layers,
        tied=not any(headers.group_of(t.name) == "head" for t in contents.tensors),
        vision=tuple(_as_is(t) for t in contents.tensors if headers.group_of(t.name, count) == "vision"),
        multimodal=config.section("vision_config") is not None,
        unknown=() if context else ("config.json names no length; 4,096 tokens are assumed",),
    )


def _by_layer(contents: Contents) -> dict[int, list[Stored]]:
    layers: dict[int, list[Stored]] = {}
    for tensor in contents.tensors:
        number = headers.layer_of(tensor.name)
        if number is not None and headers.group_of(tensor.name) not in ("vision", "draft"):
            layers.setdefault(number, []).append(tensor)
    return layers


def _layer(text: Config, number: int, tensors: list[Stored], hidden: int) -> Layer:
    groups = Counter(headers.group_of(tensor.name) for tensor in tensors)
    mixer = _mixer(text, hidden) if groups["attention"] else None
    forward = _forward(text, tensors, hidden, groups)
    return Layer(f"layers.{number}", mixer, forward, ())


def _mixer(text: Config, hidden: int) -> Mixer:
    facts = text.about("attention")
    heads = facts.maybe("num_attention_heads", "n_head") or 1
    if facts.maybe("kv_lora_rank"):
        return Latent(
            hidden=hidden,
            q_heads=heads,
            q_rank=facts.count("q_lora_rank"),
            kv_rank=facts.number("kv_lora_rank"),
            nope=facts.count("qk_nope_head_dim"),
            rope=facts.count("qk_rope_head_dim"),
            v_dim=facts.count("v_head_dim"),
        )
    width = facts.maybe("head_dim") or max(1, hidden // heads)
    return Attention(hidden, heads, facts.maybe("num_key_value_heads") or heads, width)


def _forward(text: Config, tensors: list[Stored], hidden: int, groups: Counter[Group]) -> Forward | None:
    facts = text.about("experts")
    routed = facts.maybe("n_routed_experts", "num_experts", "num_local_experts")
    if groups["experts"] and routed:
        active = facts.maybe("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk") or 1
        inter = facts.maybe("moe_intermediate_size", "intermediate_size") or hidden
        shared = sum(t.bytes for t in tensors if headers.group_of(t.name) == "shared")
        each = sum(t.bytes for t in tensors if headers.group_of(t.name) == "experts") / routed
        return Experts(hidden, routed, active, inter, shared=round(inter * shared / each) if each else 0)
    dense = text.about("dense").maybe("intermediate_size", "n_inner", "ffn_hidden_size")
    return Mlp(hidden, dense) if groups["dense"] and dense else None


def _as_is(tensor: Stored) -> Tensor:
    return Tensor(tensor.name, tensor.shape, "vision", linear=False, always=tensor.kind)
