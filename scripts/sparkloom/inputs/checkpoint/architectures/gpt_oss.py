"""gpt-oss: every second layer sees a window; experts with biases, in MXFP4."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts, layer_types
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def read(config: Config) -> Shape:
    text = config.text
    facts = text.about("attention")
    window = facts.number("sliding_window")
    forward = experts(text, shared=0, router="router", biases=True)
    words = layer_types(text) or [("full", "sliding")[n % 2 == 0] for n in range(text.number("num_hidden_layers"))]
    layers = []
    for number, word in enumerate(words):
        mixer = attention(
            text, bias=facts.flag("attention_bias"), out_bias=facts.flag("attention_bias"), sinks=True,
            window=window if word.startswith("sliding") else 0,
        )  # fmt: skip
        layers.append(Layer(f"model.layers.{number}", mixer, forward, mixer.hidden))
    return Shape(layers=tuple(layers), **ends(config))


READERS = (Reader(("GptOssForCausalLM",), read, "transformers models/gpt_oss"),)
