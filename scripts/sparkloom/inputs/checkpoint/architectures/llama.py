"""Llama, Mistral and those that say the same, without and with experts; Llama 4 and gpt-oss, whose layers differ."""

from __future__ import annotations

from dataclasses import replace

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Forward
from sparkloom.inputs.checkpoint.shape import Shape

WHOLE = 4  # Llama 4: every fourth layer sees all, without positions (no_rope_layer_interval)


@reads("LlamaForCausalLM", "MistralForCausalLM", source="transformers models/llama, models/mistral")
def llama(config: Config) -> Shape:
    text = config.text
    facts = text.about("attention")
    window = facts.count("sliding_window") if facts.value("use_sliding_window") is not False else 0
    bias = facts.flag("attention_bias")
    mixer = common.attention(text, bias=bias, out_bias=bias, window=window)
    return common.model(config, "model", common.alike(text, "model", mixer, common.mlp(text)))


@reads("MixtralForCausalLM", source="transformers models/mixtral")
def mixtral(config: Config) -> Shape:
    text = config.text
    mixer = common.attention(text, window=text.about("attention").count("sliding_window"))
    forward = common.experts(text, shared=0, **common.SPARSE_BLOCK)
    return common.model(config, "model", common.alike(text, "model", mixer, forward))


@reads("Mistral3ForConditionalGeneration", source="transformers models/mistral3, pixtral")
def mistral3(config: Config) -> Shape:
    text, at = config.text, "language_model.model"
    if text.text_of("model_type") != "mistral":
        raise text.refusal(f"model_type '{text.text_of('model_type')}' below Mistral 3; this reader knows 'mistral'")
    mixer = common.attention(text, window=text.about("attention").count("sliding_window"))
    layers = common.alike(text, at, mixer, common.mlp(text))
    merge = config.about("vision").maybe("spatial_merge_size") or 2
    bias = config.about("vision").flag("multimodal_projector_bias")
    tower = tensors.tower(config, "pixtral", text_hidden=mixer.hidden, merge=merge, projector_bias=int(bias))
    return common.model(config, at, layers, vision=tower, head="language_model.lm_head")


@reads("Llama4ForConditionalGeneration", source="transformers models/llama4")
def llama4(config: Config) -> Shape:
    text, at = config.text, "language_model.model"
    chunk = text.about("attention").count("attention_chunk_size")
    interval = text.about("layers").maybe("no_rope_layer_interval") or WHOLE
    words = common.layer_types(text) or common.every(text, interval, "chunked_attention")
    mixers = (common.attention(text, window=chunk if word.startswith("chunked") else 0) for word in words)
    layers = common.layers(at, ((mixer, _llama4_forward(text, number)) for number, mixer in enumerate(mixers)))
    unknown = "config.json leaves out the vision tower's widths (0.9 B parameters)"
    if config.section("vision_config"):
        unknown = "the vision tower is not counted: no file with its widths was read"
    return common.model(config, at, layers, head="language_model.lm_head", multimodal=True, unknown=(unknown,))


def _llama4_forward(text: Config, number: int) -> Forward:
    step = text.about("layers").maybe("interleave_moe_layer_step") or 1
    if (number + 1) % step:
        return common.mlp(text, "intermediate_size_mlp", place="feed_forward")
    inter = text.about("experts").number("intermediate_size")
    places = {"place": "feed_forward", "router": "router", "shared_place": "shared_expert"}
    return common.experts(text, inter=inter, shared=inter, **places)


@reads("GptOssForCausalLM", source="transformers models/gpt_oss")
def gpt_oss(config: Config) -> Shape:
    """Every second layer sees a window; experts with biases, in MXFP4."""
    text = config.text
    facts = text.about("attention")
    window, bias = facts.number("sliding_window"), facts.flag("attention_bias")
    forward = common.experts(text, shared=0, router="router", biases=True)
    full = common.attention(text, bias=bias, out_bias=bias, sinks=True)
    sliding = replace(full, window=window)
    words = common.layer_types(text) or common.every(text, 2, "sliding_attention")
    layers = common.layers("model", ((sliding if word.startswith("sliding") else full, forward) for word in words))
    return common.model(config, "model", layers)
