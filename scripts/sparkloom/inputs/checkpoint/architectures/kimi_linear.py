"""Kimi Linear: three layers of delta attention for each of latent attention, then experts."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import (
    SPARSE_BLOCK,
    Reader,
    experts,
    mlp,
    model,
    number_of_layers,
    part,
)  # fmt: skip
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import DeltaAttention, Latent
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape


def read(config: Config) -> Shape:
    text = config.text
    line = text.section("linear_attn_config")
    if line is None:
        raise text.missing("linear_attn_config")
    full = {int(number) for number in line.about("layers").items("full_attn_layers")}  # counted from 1
    delta, whole = part(DeltaAttention, line, hidden=text.number("hidden_size")), part(Latent, text)
    layers = [
        Layer(f"model.layers.{n}", whole if n + 1 in full else delta, _forward(text, n), whole.hidden)
        for n in range(number_of_layers(text))
    ]
    return model(config, "model", layers)


def _forward(text: Config, number: int) -> Forward:
    if number < text.about("layers").count("first_k_dense_replace"):
        return mlp(text)
    return experts(text, router_bias=True, **SPARSE_BLOCK)


READERS = (Reader(("KimiLinearForCausalLM",), read, "transformers models/kimi_linear; the checkpoint's own list"),)
