"""GLM-5.3-Flash: three layers of delta attention per layer of sparse latent attention, hyper-connections between."""

from __future__ import annotations

from collections.abc import Iterator

from sparkloom.inputs.checkpoint.architectures._common import Reader, ends, experts, indexer, latent, layer_types, mlp
from sparkloom.inputs.checkpoint.architectures.deepseek import joint
from sparkloom.inputs.checkpoint.architectures.deepseek_v4 import streams
from sparkloom.inputs.checkpoint.architectures.kimi_linear import delta_attention
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor
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
    draft = [_layer(text, f"{at}.layers.{n}", whole, _forward(text, n, []), pool) for n in range(count, count + drafts)]
    unknown = []
    if not text.value("num_nextn_predict_layers"):
        unknown.append("config.json names no draft layers; the published checkpoint is larger than its layers make")
    if not config.section("vision_config"):
        unknown.append("config.json has no vision_config: the tower is not counted")
    return Shape(
        layers=tuple(layers),
        draft=tuple(draft),
        draft_more=tuple(tensor for layer in draft for tensor in joint(layer.at, whole.hidden, 0)),
        embedding=f"{at}.embed_tokens",
        last_norm=f"{at}.norm",
        unknown=tuple(unknown),
        **ends(config),
    )


def _layer(text: Config, at: str, mixer: Mixer, forward: Forward, pool: int) -> Layer:
    more = [*streams(at, mixer.hidden, text.about("model").number("hc_mult"))]
    if mixer.kind == "attention":
        more += _pooled(f"{at}.self_attn.indexer", mixer.hidden, text.about("sparse").number("index_head_dim"), pool)
    return Layer(at, mixer, forward, mixer.hidden, more=tuple(more))


def _pooled(at: str, hidden: int, width: int, pool: int) -> Iterator[Tensor]:
    """The indexer's keys are pooled over a few tokens."""
    yield Tensor(f"{at}.index_kpool_compress_ape", (pool, width), "attention", linear=False)
    yield Tensor(f"{at}.index_kpool_compress_gate", (width, hidden), "attention", linear=False)


def _forward(text: Config, number: int, feeds: list[object]) -> Forward:
    dense = feeds[number] == "dense" if number < len(feeds) else number < text.count("first_k_dense_replace")
    return mlp(text) if dense else experts(text, router_bias=True)


READERS = (Reader(("Glm5NextForConditionalGeneration",), read, "transformers models/glm5_next"),)
