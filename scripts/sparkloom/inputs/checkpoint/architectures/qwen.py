"""Qwen3 to 3.8: Llama's layers with norms on each head; from Qwen3-Next on three gated delta nets per attention."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from sparkloom.inputs.checkpoint import towers
from sparkloom.inputs.checkpoint.architectures._common import (
    Reader,
    attention,
    every,
    experts,
    layer_types,
    mlp,
    model,
    number_of_layers,
    part,
)  # fmt: skip
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Choice, DeltaNet
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor, matrix, norm

TOWER = "qwen3_vl"
FLASH = "model.language_model"  # where Qwen3.8-Flash-Next has its layers
DRAFT_NORMS = ("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm")


def qwen3(config: Config) -> Shape:
    text, at = config.text, _place(config)
    mixer = attention(text, norms="head", bias=text.flag("attention_bias"), out_bias=text.flag("attention_bias"))
    layers = [
        Layer(f"{at}.layers.{n}", mixer, _qwen3_forward(text, n), mixer.hidden) for n in range(number_of_layers(text))
    ]
    return model(config, at, layers, vision=towers.of(config, TOWER))


def _place(config: Config) -> str:
    return "model.language_model" if config.section("vision_config") else "model"


def _qwen3_forward(text: Config, number: int) -> Forward:
    """The mixture has experts in every layer, unless it says otherwise."""
    if not text.maybe("num_experts"):
        return mlp(text)
    step = text.maybe("decoder_sparse_step") or 1
    dense = number in text.items("mlp_only_layers") or (number + 1) % step
    return mlp(text) if dense else experts(text)


def qwen3_next(config: Config) -> Shape:
    text, at = config.text, _place(config)
    gated = text.about("attention").value("attn_output_gate") is not False  # Qwen3-Next always is, and does not say so
    full, line, forward = attention(text, norms="head", gate=gated), part(DeltaNet, text), _forward(text)
    interval = text.about("layers").maybe("full_attention_interval") or 4
    layers = [
        Layer(f"{at}.layers.{n}", full if word == "full_attention" else line, forward, full.hidden)
        for n, word in enumerate(layer_types(text) or every(text, interval, "linear_attention"))
    ]
    drafts = text.about("mtp").count("mtp_num_hidden_layers", "num_nextn_predict_layers")
    drafts = drafts or (1 if text.text_of("model_type") == "qwen3_next" else 0)
    joint = matrix("mtp.fc", full.hidden, 2 * full.hidden, "draft")
    draft = [Layer(f"mtp.layers.{n}", full, forward, full.hidden) for n in range(drafts)]
    return model(config, at, layers, vision=towers.of(config, TOWER), **_drafting(draft, [joint]))


def _drafting(layers: list[Layer], joint: list[Tensor]) -> dict[str, Any]:
    """What joins a token's embedding and the last layer's output stands before the first draft layer."""
    norms = [tensor for layer in layers[:1] for name in DRAFT_NORMS for tensor in norm(name, layer.hidden)]
    return {"draft": tuple(layers), "draft_more": (*joint, *norms) if layers else ()}


def _forward(text: Config) -> Forward:
    shared = {"shared_gate": True, "shared_place": "shared_expert"}
    return experts(text, **shared) if text.maybe("num_experts") else mlp(text)


def flash_next(config: Config) -> Shape:
    """Block-sparse attention, low-rank hyper-connections, an n-gram table; 3.5's layers otherwise."""
    text = config.text
    full = attention(text, norms="head", gate=True, choice=_choice(text))
    line, forward = part(DeltaNet, text), _forward(text)
    looked_up = {int(number) for number in text.about("tables").items("ple_layer_ids")}  # counted from 1
    layers = []
    for number, word in enumerate(layer_types(text)):
        at, whole = f"{FLASH}.layers.{number}", word == "full_attention"
        more = [*_between(text, at), *(_indexer(text, at) if whole else ())]
        more += _table_reader(text, at) if number + 1 in looked_up else []
        layers.append(Layer(at, full if whole else line, forward, full.hidden, (), tuple(more)))
    draft = [
        _flash_draft(text, f"mtp.layers.{n}", full) for n in range(text.about("mtp").count("mtp_num_hidden_layers"))
    ]
    joint = [matrix(f"mtp.{name}", full.hidden, full.hidden, "draft") for name in ("fc_embedding", "fc_hidden")]
    vision = towers.of(config, TOWER)
    return model(
        config, FLASH, layers, vision=vision, tables=tuple(_tables(text)), last_norm="",
        other=tuple(_residual(text, f"{FLASH}.hyper_connection_mixer", combine=False)),
        unknown=() if vision else ("config.json has no vision_config: the tower is not counted",),
        **_drafting(draft, joint),
    )  # fmt: skip


def _flash_draft(text: Config, at: str, full: Attention) -> Layer:
    return Layer(at, full, _forward(text), full.hidden, (), (*_between(text, at), *_indexer(text, at)))


def _between(text: Config, at: str) -> Iterator[Tensor]:
    for half in ("attn", "mlp"):
        yield from _residual(text, f"{at}.{half}_hyper_connection")


def _residual(text: Config, at: str, *, combine: bool = True) -> Iterator[Tensor]:
    facts = text.about("model")
    streams, rank = facts.number("hc_count"), facts.number("hc_lowrank")
    wide = streams * facts.number("hidden_size")
    yield from norm(f"{at}.hc_norm", wide)
    yield matrix(f"{at}.input_mix_weight_down", rank, wide, "other")
    yield matrix(f"{at}.input_mix_weight_up", wide, rank, "other")
    if combine:
        yield matrix(f"{at}.block_inject_weight", streams, wide, "other")


def _choice(text: Config) -> Choice:
    facts = text.about("sparse")
    block = facts.number("indexer_compress_ratio")
    heads, width = facts.number("indexer_n_heads"), facts.number("indexer_head_dim") * facts.number("indexer_kv_heads")
    return Choice(heads, width, facts.number("indexer_budget") // block, block, per_token=False)


def _indexer(text: Config, at: str) -> Iterator[Tensor]:
    facts, name = text.about("sparse"), f"{at}.self_attn.indexer"
    width = facts.number("indexer_head_dim")
    heads = facts.number("indexer_n_heads") + facts.number("indexer_kv_heads")
    yield matrix(f"{name}.index_qk_proj", heads * width, text.number("hidden_size"), "attention")
    for each in ("q_layernorm", "k_layernorm"):
        yield from norm(f"{name}.{each}", width)


def _table_reader(text: Config, at: str) -> Iterator[Tensor]:
    facts, hidden = text.about("tables"), text.number("hidden_size")
    wide, embed = hidden * text.number("hc_count"), facts.number("ple_embed_dim")
    yield matrix(f"{at}.ple.key_proj", wide, embed, "other")
    yield matrix(f"{at}.ple.value_proj", hidden, embed, "other")
    for each in ("norm_key", "norm_query", "norm_conv"):
        yield from norm(f"{at}.ple.{each}", wide)
    yield Tensor(f"{at}.ple.conv1d.weight", (wide, 1, facts.number("ple_conv_kernel_size")), "other", linear=False)


def _tables(text: Config) -> Iterator[Tensor]:
    """One table per layer that looks up; the sizes of its parts are primes a few tens above the base: left out here."""
    facts = text.about("tables")
    heads = (facts.number("ngram_size") - 1) * facts.number("heads_per_ngram")
    divisor = facts.maybe("make_ngram_vocab_size_divisible_by") or 1
    rows = ceil(heads * facts.number("ngram_vocab_size_base") / divisor) * divisor
    width = facts.number("ple_embed_dim") // heads
    for number in facts.items("ple_layer_ids"):
        at = f"{FLASH}.layers.{int(number) - 1}.ple.ple_embedding.ngram_embedding.weight"
        yield Tensor(at, (rows, width), "tables", linear=False)


READERS = (
    Reader(
        ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Qwen3VLForConditionalGeneration",
         "Qwen3VLMoeForConditionalGeneration"), qwen3, "transformers models/qwen3, qwen3_moe, qwen3_vl, qwen3_vl_moe",
    ),
    Reader(
        ("Qwen3NextForCausalLM", "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"), qwen3_next,
        "transformers models/qwen3_next, qwen3_5, qwen3_5_moe",
    ),
    Reader(("Qwen4ExpForConditionalGeneration",), flash_next, "transformers models/qwen4_exp"),
)  # fmt: skip
