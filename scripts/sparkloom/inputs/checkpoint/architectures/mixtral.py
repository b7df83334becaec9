"""Mixtral: experts in every layer, under names of their own."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def read(config: Config) -> Shape:
    text = config.text
    mixer = attention(text, window=text.about("attention").count("sliding_window"))
    forward = experts(text, shared=0, place="block_sparse_moe", names=("w1", "w3", "w2"))
    count = text.about("layers").number("num_hidden_layers")
    layers = tuple(Layer(f"model.layers.{n}", mixer, forward, mixer.hidden) for n in range(count))
    return Shape(layers=layers, **ends(config))


READERS = (Reader(("MixtralForCausalLM",), read, "transformers models/mixtral"),)
