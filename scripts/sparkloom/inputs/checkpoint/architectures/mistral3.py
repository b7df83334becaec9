"""Mistral Small 3.1 and after: Mistral's layers below Pixtral's tower."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, biased, matrix, norm
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def read(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    if text.text_of("model_type") != "mistral":
        raise text.refusal(f"model_type '{text.text_of('model_type')}' below Mistral 3; this reader knows 'mistral'")
    at = "language_model.model"
    mixer, forward = attention(text, window=text.about("attention").count("sliding_window")), mlp(text)
    count = text.about("layers").number("num_hidden_layers")
    layers = tuple(Layer(f"{at}.layers.{n}", mixer, forward, mixer.hidden) for n in range(count))
    merge = config.about("vision").maybe("spatial_merge_size") or 2
    bias = config.about("vision").flag("multimodal_projector_bias")
    seen = tuple(_tower(vision, mixer.hidden, merge, bias)) if vision else ()
    named: dict[str, Any] = {
        "embedding": f"{at}.embed_tokens",
        "last_norm": f"{at}.norm",
        "head": "language_model.lm_head",
    }
    return Shape(layers=layers, vision=seen, **named, **ends(config))


def _tower(vision: Config, text_hidden: int, merge: int, bias: bool) -> Iterator[Tensor]:
    facts, at = vision.about("vision"), "vision_tower"
    hidden, inter = facts.number("hidden_size"), facts.number("intermediate_size")
    patch = facts.number("patch_size")
    yield Tensor(f"{at}.patch_conv.weight", (hidden, 3, patch, patch), "vision", linear=False)
    yield from norm(f"{at}.ln_pre", hidden)
    for number in range(facts.number("num_hidden_layers")):
        block = f"{at}.transformer.layers.{number}"
        for name in "qkvo":
            yield matrix(f"{block}.attention.{name}_proj", hidden, hidden, "vision")
        for name, rows, columns in (("gate", inter, hidden), ("up", inter, hidden), ("down", hidden, inter)):
            yield matrix(f"{block}.feed_forward.{name}_proj", rows, columns, "vision")
        yield from norm(f"{block}.attention_norm", hidden)
        yield from norm(f"{block}.ffn_norm", hidden)
    projector = "multi_modal_projector"
    yield from norm(f"{projector}.norm", hidden)
    yield matrix(f"{projector}.patch_merger.merging_layer", hidden, hidden * merge**2, "vision")
    yield from biased(f"{projector}.linear_1", text_hidden, hidden, "vision", bias)
    yield from biased(f"{projector}.linear_2", text_hidden, text_hidden, "vision", bias)


READERS = (Reader(("Mistral3ForConditionalGeneration",), read, "transformers models/mistral3, pixtral"),)
