"""Qwen3 to 3.8: Llama's layers with norms on each head; from Qwen3-Next on three gated delta nets per attention."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Choice, DeltaNet, Forward
from sparkloom.inputs.checkpoint.shape import Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor

TOWER = "qwen3_vl"
FLASH = "model.language_model"  # where Qwen3.8-Flash-Next has its layers


@reads(
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    source="transformers models/qwen3, qwen3_moe, qwen3_vl, qwen3_vl_moe",
)
def qwen3(config: Config) -> Shape:
    text, at = config.text, _place(config)
    bias = text.flag("attention_bias")
    mixer = common.attention(text, norms="head", bias=bias, out_bias=bias)
    numbers = range(common.number_of_layers(text))
    layers = common.layers(at, ((mixer, _qwen3_forward(text, number)) for number in numbers))
    return common.model(config, at, layers, vision=tensors.tower(config, TOWER))


def _place(config: Config) -> str:
    return "model.language_model" if config.section("vision_config") else "model"


def _qwen3_forward(text: Config, number: int) -> Forward:
    """The mixture has experts in every layer, unless it says otherwise."""
    if not text.maybe("num_experts"):
        return common.mlp(text)
    step = text.maybe("decoder_sparse_step") or 1
    dense = number in text.items("mlp_only_layers") or (number + 1) % step
    return common.mlp(text) if dense else common.experts(text)


@reads(
    "Qwen3NextForCausalLM",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
    source="transformers models/qwen3_next, qwen3_5, qwen3_5_moe",
)
def qwen3_next(config: Config) -> Shape:
    text, at = config.text, _place(config)
    gated = text.about("attention").value("attn_output_gate") is not False  # Qwen3-Next always is, and does not say so
    full, line, forward = common.attention(text, norms="head", gate=gated), common.part(DeltaNet, text), _forward(text)
    interval = text.about("layers").maybe("full_attention_interval") or 4
    words = common.layer_types(text) or common.every(text, interval, "linear_attention")
    layers = common.layers(at, ((full if word == "full_attention" else line, forward) for word in words))
    drafts = text.about("mtp").count("mtp_num_hidden_layers", "num_nextn_predict_layers")
    drafts = drafts or (1 if text.text_of("model_type") == "qwen3_next" else 0)
    drafting = _drafting(text, common.layers("mtp", [(full, forward)] * drafts))
    return common.model(config, at, layers, vision=tensors.tower(config, TOWER), **drafting)


def _drafting(text: Config, layers: list[Layer], *, apart: bool = False) -> dict[str, Any]:
    """What joins a token's embedding and the last layer's output stands before the first draft layer."""
    joint = tensors.extras(text, "qwen_joint", "mtp", apart=apart)
    return {"draft": tuple(layers), "draft_more": joint if layers else ()}


def _forward(text: Config) -> Forward:
    shared = {"shared_gate": True, "shared_place": "shared_expert"}
    return common.experts(text, **shared) if text.maybe("num_experts") else common.mlp(text)


@reads("Qwen4ExpForConditionalGeneration", source="transformers models/qwen4_exp")
def flash_next(config: Config) -> Shape:
    """Block-sparse attention, low-rank hyper-connections, an n-gram table; 3.5's layers otherwise."""
    text = config.text
    full = common.attention(text, norms="head", gate=True, choice=_choice(text))
    line, forward = common.part(DeltaNet, text), _forward(text)
    looked_up = {int(number) for number in text.about("tables").items("ple_layer_ids")}  # counted from 1
    layers = []
    for number, word in enumerate(common.layer_types(text)):
        at, whole = f"{FLASH}.layers.{number}", word == "full_attention"
        more = _flash_extras(text, at, chooses=whole)
        more += tensors.extras(text, "qwen_table_reader", f"{at}.ple") if number + 1 in looked_up else ()
        layers.append(Layer(at, full if whole else line, forward, (), more))
    drafts = [f"mtp.layers.{n}" for n in range(text.about("mtp").count("mtp_num_hidden_layers"))]
    draft = [Layer(at, full, forward, (), _flash_extras(text, at, chooses=True)) for at in drafts]
    vision = tensors.tower(config, TOWER)
    return common.model(
        config,
        FLASH,
        layers,
        vision=vision,
        tables=tuple(_tables(text)),
        last_norm="",
        other=tensors.extras(text, "qwen_streams", f"{FLASH}.hyper_connection_mixer", last=True),
        unknown=() if vision else ("config.json has no vision_config: the tower is not counted",),
        **_drafting(text, draft, apart=True),
    )


def _flash_extras(text: Config, at: str, *, chooses: bool) -> tuple[Tensor, ...]:
    streams = tensors.extras(text, "qwen_streams", f"{at}.{{attn,mlp}}_hyper_connection")
    indexer = tensors.extras(text, "qwen_indexer", f"{at}.self_attn.indexer") if chooses else ()
    return streams + indexer


def _choice(text: Config) -> Choice:
    facts = text.about("sparse")
    block = facts.number("indexer_compress_ratio")
    heads, width = facts.number("indexer_n_heads"), facts.number("indexer_head_dim") * facts.number("indexer_kv_heads")
    return Choice(heads, width, facts.number("indexer_budget") // block, block, per_token=False)


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
