"""GLM-4.5 to 4.7: attention with biases, a few dense layers, then experts. GLM-5.3-Flash: three layers of delta
attention per layer of sparse latent attention, hyper-connections between.
"""

from __future__ import annotations

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.architectures.deepseek import drafting, forward_of
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import DeltaAttention, Forward, Indexer, Latent, Mixer
from sparkloom.inputs.checkpoint.shape import Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor


@reads("Glm4MoeForCausalLM", source="transformers models/glm4_moe")
def glm4(config: Config) -> Shape:
    text = config.text
    facts = text.about("attention")
    bias, norms = facts.flag("attention_bias"), "head" if facts.flag("use_qk_norm") else ""
    mixer = common.attention(text, bias=bias, norms=norms)
    count, drafts = common.number_of_layers(text), text.about("mtp").count("num_nextn_predict_layers")
    every = [Layer(f"model.layers.{n}", mixer, forward_of(text, n, corrected=True)) for n in range(count + drafts)]
    return common.model(config, "model", every[:count], **drafting(text, every[count:], own_ends=True))


@reads("Glm5NextForConditionalGeneration", source="transformers models/glm5_next")
def glm53_flash(config: Config) -> Shape:
    text, at = config.text, "model.language_model"
    pool = text.about("sparse").maybe("index_kpool") or 1
    delta = common.part(DeltaAttention, text.mapping("linear_attn_config"), hidden=text.number("hidden_size"))
    whole = common.part(Latent, text, indexer=common.part(Indexer, text, block=pool), chosen=True)
    words, feeds = common.layer_types(text), text.about("layers").items("mlp_layer_types")
    layers = [
        _layer(text, f"{at}.layers.{n}", delta if word == "linear_attention" else whole, _forward(text, n, feeds), pool)
        for n, word in enumerate(words)
    ]
    count, drafts = len(words), text.about("mtp").count("num_nextn_predict_layers")
    draft = [_draft(text, f"{at}.layers.{n}", whole, pool) for n in range(count, count + drafts)]
    vision, unknown = tensors.tower(config, "glm5"), []
    if text.value("num_nextn_predict_layers") is None:
        unknown.append("config.json names no draft layers, and the published checkpoint has one")
    if not vision:
        unknown.append("config.json has no vision_config: the tower is not counted")
    drafted = drafting(text, draft, own_ends=False)
    return common.model(config, at, layers, **drafted, vision=vision, unknown=tuple(unknown))


def _layer(text: Config, at: str, mixer: Mixer, forward: Forward, pool: int) -> Layer:
    pooled = _pooled_keys(text, at, pool) if mixer.kind == "attention" else ()
    return Layer(at, mixer, forward, more=(*tensors.extras(text, "glm_streams", at), *pooled))


def _draft(text: Config, at: str, mixer: Mixer, pool: int) -> Layer:
    """One stream only: nothing mixes it."""
    return Layer(at, mixer, common.experts(text, router_bias=True), more=_pooled_keys(text, at, pool))


def _pooled_keys(text: Config, at: str, pool: int) -> tuple[Tensor, ...]:
    return tensors.extras(text, "glm_pooled_keys", f"{at}.self_attn.indexer", pool=pool)


def _forward(text: Config, number: int, feeds: list[object]) -> Forward:
    dense = feeds[number] == "dense" if number < len(feeds) else number < text.count("first_k_dense_replace")
    return common.mlp(text) if dense else common.experts(text, router_bias=True)
