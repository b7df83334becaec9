"""Llama 2 and 3, Mistral, Qwen2 and those that say the same: one kind of attention, one feed-forward."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def read(config: Config) -> Shape:
    text = config.text
    facts = text.about("attention")
    window = facts.count("sliding_window") if facts.value("use_sliding_window") is not False else 0
    mixer = attention(text, bias=facts.flag("attention_bias"), out_bias=facts.flag("attention_bias"), window=window)
    forward = mlp(text)
    count = text.about("layers").number("num_hidden_layers")
    layers = [Layer(f"model.layers.{n}", mixer, forward, forward.hidden) for n in range(count)]
    return Shape(layers=tuple(layers), **ends(config))


READERS = (Reader(("LlamaForCausalLM", "MistralForCausalLM"), read, "transformers models/llama, models/mistral"),)
