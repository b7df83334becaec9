"""Llama 4: most layers see chunks only; experts in every layer or every second one."""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts, layer_types, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape

WHOLE = 4  # every fourth layer sees all, without positions (no_rope_layer_interval)


def read(config: Config) -> Shape:
    text = config.text
    at = "language_model.model"
    chunk = text.about("attention").count("attention_chunk_size")
    count = text.about("layers").number("num_hidden_layers")
    every = text.about("layers").maybe("no_rope_layer_interval") or WHOLE
    words = layer_types(text) or ["chunked_attention" if (n + 1) % every else "full_attention" for n in range(count)]
    layers = []
    for number, word in enumerate(words):
        mixer = attention(text, window=chunk if word.startswith("chunked") else 0)
        layers.append(Layer(f"{at}.layers.{number}", mixer, _forward(text, number), mixer.hidden))
    vision = config.section("vision_config")
    unknown = () if vision else ("config.json leaves out the vision tower's widths (0.9 B parameters)",)
    if vision:
        unknown = ("the vision tower is not counted: no file with its widths was read",)
    named: dict[str, Any] = {
        "embedding": f"{at}.embed_tokens",
        "last_norm": f"{at}.norm",
        "head": "language_model.lm_head",
    }
    return Shape(layers=tuple(layers), unknown=unknown, **named, **{**ends(config), "multimodal": True})


def _forward(text: Config, number: int) -> Forward:
    step = text.about("layers").maybe("interleave_moe_layer_step") or 1
    if (number + 1) % step:
        return mlp(text, "intermediate_size_mlp", place="feed_forward")
    inter = text.about("experts").number("intermediate_size")
    return experts(text, inter=inter, shared=inter, place="feed_forward", router="router", shared_place="shared_expert")


READERS = (Reader(("Llama4ForConditionalGeneration",), read, "transformers models/llama4"),)
