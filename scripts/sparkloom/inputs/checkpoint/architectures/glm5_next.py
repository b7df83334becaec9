"""GLM-5.3-Flash: three layers of delta attention per layer of sparse latent attention, hyper-connections between."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.inputs.checkpoint.architectures._common import Reader, ends, experts, indexer, latent, layer_types, mlp
from sparkloom.inputs.checkpoint.architectures.deepseek import joint
from sparkloom.inputs.checkpoint.architectures.deepseek_v4 import streams
from sparkloom.inputs.checkpoint.architectures.kimi_linear import delta_attention
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, biased, matrix, norm
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Mixer, Shape


def read(config: Config) -> Shape:
    text = config.text
    line = text.section("linear_attn_config")
    if line is None:
        raise text.missing("linear_attn_config")
    pool = text.about("sparse").maybe("index_kpool") or 1
    delta, whole = delta_attention(text, line), latent(text, indexer=indexer(text, block=pool), chosen=True)
    at = "model.language_model"
    words, feeds = layer_types(text), text.about("layers").items("mlp_layer_types")
    layers = [
        _layer(text, f"{at}.layers.{n}", delta if word == "linear_attention" else whole, _forward(text, n, feeds), pool)
        for n, word in enumerate(words)
    ]
    count, drafts = len(words), text.about("mtp").count("num_nextn_predict_layers")
    draft = [_draft(text, f"{at}.layers.{n}", whole, pool) for n in range(count, count + drafts)]
    vision, unknown = config.section("vision_config"), []
    if text.value("num_nextn_predict_layers") is None:
        unknown.append("config.json names no draft layers, and the published checkpoint has one")
    if vision is None:
        unknown.append("config.json has no vision_config: the tower is not counted")
    return Shape(
        layers=tuple(layers),
        draft=tuple(draft),
        draft_more=tuple(tensor for layer in draft for tensor in joint(layer.at, whole.hidden, 0)),
        vision=tuple(_tower(vision)) if vision else (),
        embedding=f"{at}.embed_tokens",
        last_norm=f"{at}.norm",
        unknown=tuple(unknown),
        **ends(config),
    )


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


def _tower(vision: Config) -> Iterator[Tensor]:
    """Without a position table: its angles are computed. Four patches become one token of the language model."""
    facts, at = vision.about("vision"), "model.visual"
    hidden, inter, out = facts.number("hidden_size"), facts.number("intermediate_size"), facts.number("out_hidden_size")
    joined, wide = facts.number("spatial_merge_size"), facts.number("projection_intermediate_size")
    patch = (facts.maybe("in_channels") or 3, facts.number("temporal_patch_size"), *[facts.number("patch_size")] * 2)
    yield Tensor(f"{at}.patch_embed.proj.weight", (hidden, *patch), "vision", linear=False)
    yield Tensor(f"{at}.patch_embed.proj.bias", (hidden,), "vision", linear=False)
    for number in range(facts.number("depth")):
        yield from _block(f"{at}.blocks.{number}", hidden, inter, hidden // facts.number("num_heads"))
    yield from norm(f"{at}.post_layernorm", hidden)
    yield Tensor(f"{at}.downsample.weight", (out, hidden, joined, joined), "vision", linear=False)
    yield Tensor(f"{at}.downsample.bias", (out,), "vision", linear=False)
    yield matrix(f"{at}.merger.proj", out, out, "vision")
    yield from norm(f"{at}.merger.post_projection_norm", out, bias=True)
    for name, rows, columns in (("gate_proj", wide, out), ("up_proj", wide, out), ("down_proj", out, wide)):
        yield matrix(f"{at}.merger.{name}", rows, columns, "vision")


def _block(at: str, hidden: int, inter: int, head: int) -> Iterator[Tensor]:
    for name, width in (("norm1", hidden), ("norm2", hidden), ("attn.q_norm", head), ("attn.k_norm", head)):
        yield from norm(f"{at}.{name}", width)
    yield from biased(f"{at}.attn.qkv", 3 * hidden, hidden, "vision")
    yield from biased(f"{at}.attn.proj", hidden, hidden, "vision")
    for name, rows, columns in (("gate_proj", inter, hidden), ("up_proj", inter, hidden), ("down_proj", hidden, inter)):
        yield from biased(f"{at}.mlp.{name}", rows, columns, "vision")


READERS = (Reader(("Glm5NextForConditionalGeneration",), read, "transformers models/glm5_next"),)
