"""GLM-4.5 to 4.7: attention with biases, a few dense layers, then experts. GLM-5.3-Flash: three layers of delta
attention per layer of sparse latent attention, hyper-connections between.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.inputs.checkpoint import towers
from sparkloom.inputs.checkpoint.architectures._common import (
    Reader,
    attention,
    experts,
    layer_types,
    mlp,
    model,
    number_of_layers,
    part,
)  # fmt: skip
from sparkloom.inputs.checkpoint.architectures.deepseek import drafting, forward_of
from sparkloom.inputs.checkpoint.architectures.deepseek_v4 import streams
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import DeltaAttention, Indexer, Latent
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Mixer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor


def glm4(config: Config) -> Shape:
    text = config.text
    facts = text.about("attention")
    mixer = attention(text, bias=facts.flag("attention_bias"), norms="head" if facts.flag("use_qk_norm") else "")
    count, drafts = number_of_layers(text), text.about("mtp").count("num_nextn_predict_layers")
    every = [
        Layer(f"model.layers.{n}", mixer, forward_of(text, n, corrected=True), mixer.hidden)
        for n in range(count + drafts)
    ]
    return model(config, "model", every[:count], **drafting(every[count:], text.number("vocab_size")))


def glm53_flash(config: Config) -> Shape:
    text, at = config.text, "model.language_model"
    line = text.section("linear_attn_config")
    if line is None:
        raise text.missing("linear_attn_config")
    pool = text.about("sparse").maybe("index_kpool") or 1
    delta = part(DeltaAttention, line, hidden=text.number("hidden_size"))
    whole = part(Latent, text, indexer=part(Indexer, text, block=pool), chosen=True)
    words, feeds = layer_types(text), text.about("layers").items("mlp_layer_types")
    layers = [
        _layer(text, f"{at}.layers.{n}", delta if word == "linear_attention" else whole, _forward(text, n, feeds), pool)
        for n, word in enumerate(words)
    ]
    count, drafts = len(words), text.about("mtp").count("num_nextn_predict_layers")
    draft = [_draft(text, f"{at}.layers.{n}", whole, pool) for n in range(count, count + drafts)]
    vision, unknown = towers.of(config, "glm5"), []
    if text.value("num_nextn_predict_layers") is None:
        unknown.append("config.json names no draft layers, and the published checkpoint has one")
    if not vision:
        unknown.append("config.json has no vision_config: the tower is not counted")
    return model(config, at, layers, **drafting(draft, 0), vision=vision, unknown=tuple(unknown))


def _layer(text: Config, at: str, mixer: Mixer, forward: Forward, pool: int) -> Layer:
    more = [*streams(at, mixer.hidden, text.about("model").number("hc_mult"), kept="")]
    if mixer.kind == "attention":
        more += _pooled(text, at, pool)
    return Layer(at, mixer, forward, mixer.hidden, more=tuple(more))


def _draft(text: Config, at: str, mixer: Mixer, pool: int) -> Layer:
    """One stream only: nothing mixes it."""
    return Layer(at, mixer, experts(text, router_bias=True), mixer.hidden, more=tuple(_pooled(text, at, pool)))


def _pooled(text: Config, layer: str, pool: int) -> Iterator[Tensor]:
    """The indexer's keys are pooled over a few tokens."""
    at, hidden, width = f"{layer}.self_attn.indexer", text.number("hidden_size"), text.number("index_head_dim")
    yield Tensor(f"{at}.index_kpool_compress_ape", (pool, width), "attention", linear=False)
    yield Tensor(f"{at}.index_kpool_compress_gate", (width, hidden), "attention", linear=False)


def _forward(text: Config, number: int, feeds: list[object]) -> Forward:
    dense = feeds[number] == "dense" if number < len(feeds) else number < text.count("first_k_dense_replace")
    return mlp(text) if dense else experts(text, router_bias=True)


READERS = (
    Reader(("Glm4MoeForCausalLM",), glm4, "transformers models/glm4_moe"),
    Reader(("Glm5NextForConditionalGeneration",), glm53_flash, "transformers models/glm5_next"),
)
