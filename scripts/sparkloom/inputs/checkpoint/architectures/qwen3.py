"""Qwen3: Llama's layers with norms on each head; the mixture of experts has them in every layer."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts, mlp
from sparkloom.inputs.checkpoint.architectures._qwen_vision import tower
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape


def read(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    at = "model.language_model" if vision else "model"
    mixer = attention(text, norms="head", bias=text.flag("attention_bias"), out_bias=text.flag("attention_bias"))
    count = text.about("layers").number("num_hidden_layers")
    layers = tuple(Layer(f"{at}.layers.{n}", mixer, _forward(text, n), mixer.hidden) for n in range(count))
    return Shape(
        layers=layers,
        vision=tuple(tower(vision)) if vision else (),
        embedding=f"{at}.embed_tokens",
        last_norm=f"{at}.norm",
        **ends(config),
    )


def _forward(text: Config, number: int) -> Forward:
    if not text.maybe("num_experts"):
        return mlp(text)
    every = text.maybe("decoder_sparse_step") or 1
    if number in text.items("mlp_only_layers") or (number + 1) % every:
        return mlp(text)
    return experts(text)


READERS = (
    Reader(
        (
            "Qwen3ForCausalLM",
            "Qwen3MoeForCausalLM",
            "Qwen3VLForConditionalGeneration",
            "Qwen3VLMoeForConditionalGeneration",
        ),
        read,
        "transformers models/qwen3, qwen3_moe, qwen3_vl, qwen3_vl_moe",
    ),
)
