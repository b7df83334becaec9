"""MiniMax M2: experts in every layer. M3: a few dense ones first, and sparse attention that chooses by its own keys."""

from __future__ import annotations

from dataclasses import replace

from sparkloom.base import amount
from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Choice, Forward
from sparkloom.inputs.checkpoint.shape import Layer, Shape
from sparkloom.inputs.checkpoint.tensors import Tensor


@reads("MiniMaxM2ForCausalLM", source="vLLM model_executor/models/minimax_m2.py, transformers")
def m2(config: Config) -> Shape:
    text = config.text
    whole = text.about("attention").text_of("qk_norm_type") != "per_head"
    mixer = common.attention(text, norms="layer" if whole else "head")
    forward = common.experts(text, shared=0, router_bias=True, **common.SPARSE_BLOCK)
    layers = common.alike(text, "model", mixer, forward)
    named = text.about("mtp").count("num_mtp_modules")
    unknown = f"config.json names {amount.of(named, 'draft module')}; published checkpoints of M2 hold none"
    return common.model(config, "model", layers, unknown=(unknown,) if named else ())


@reads(
    "MiniMaxM3SparseForConditionalGeneration",
    source="transformers models/minimax_m3_vl; the published quantized_layers list",
)
def m3(config: Config) -> Shape:
    text, count = config.text, common.number_of_layers(config.text)
    before = "language_model." if config.section("vision_config") else ""
    at = f"{before}model"
    routed = text.about("layers").per_layer(count, "moe_layer_freq") or [1] * count
    sparse = text.section("sparse_attention_config")
    chooses = sparse.about("sparse").per_layer(count, "sparse_attention_freq") if sparse else [0] * count
    plain = common.attention(text, norms="head", gate=text.about("attention").flag("attention_output_gate"))
    layers = []
    for number in range(count):
        place, mixer, more = f"{at}.layers.{number}", plain, tuple[Tensor, ...]()
        if sparse and chooses[number]:
            mixer = replace(plain, choice=common.part(Choice, sparse))
            more = tensors.extras(sparse, "minimax_indexer", f"{place}.self_attn", hidden=plain.hidden)
        layers.append(Layer(place, mixer, _forward(text, routed[number]), more=more))
    named = text.about("mtp").count("num_mtp_modules")
    unknown = (
        f"config.json names {amount.of(named, 'draft module')}; whether the checkpoint holds them only its index says"
    )
    vision = _tower(config, plain.hidden)
    return common.model(config, at, layers, head=f"{before}lm_head", vision=vision, unknown=(unknown,))


def _forward(text: Config, routed: int) -> Forward:
    if not routed:
        return common.mlp(text, "dense_intermediate_size")
    shared = text.about("experts").count("shared_intermediate_size")
    return common.experts(text, shared=shared, router_bias=True, **common.SPARSE_BLOCK)


def _tower(config: Config, text_hidden: int) -> tuple[Tensor, ...]:
    if config.section("vision_config") is None:
        return ()
    given = {"text_hidden": text_hidden, "merge": 2, "frames": 2}
    if merging := config.section("img_token_compression_config"):
        facts = merging.about("vision")
        given["merge"] = facts.number("spatial_merge_size")
        given["frames"] = facts.number("temporal_patch_size")
    projector = config.about("vision").number("projector_hidden_size")
    return tensors.tower(config, "minimax_m3", projector=projector, **given)
