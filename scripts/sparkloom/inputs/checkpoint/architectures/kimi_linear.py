"""Kimi Linear: three layers of delta attention for each of latent attention, then experts."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, ends, experts, latent, mlp
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.recurrent import DeltaAttention
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape


def read(config: Config) -> Shape:
    text = config.text
    count = text.about("layers").number("num_hidden_layers")
    line = text.section("linear_attn_config")
    if line is None:
        raise text.missing("linear_attn_config")
    full = {int(number) for number in line.about("layers").items("full_attn_layers")}  # counted from 1
    delta, whole = delta_attention(text, line), latent(text)
    layers = tuple(
        Layer(f"model.layers.{n}", whole if n + 1 in full else delta, _forward(text, n), whole.hidden)
        for n in range(count)
    )
    return Shape(layers=layers, **ends(config))


def delta_attention(text: Config, line: Config) -> DeltaAttention:
    facts = line.about("linear")
    return DeltaAttention(
        hidden=text.number("hidden_size"),
        heads=facts.number("num_heads"),
        head_dim=facts.number("head_dim"),
        conv=facts.number("short_conv_kernel_size"),
    )


def _forward(text: Config, number: int) -> Forward:
    if number < text.about("layers").count("first_k_dense_replace"):
        return mlp(text)
    return experts(text, router_bias=True, place="block_sparse_moe", names=("w1", "w3", "w2"))


READERS = (Reader(("KimiLinearForCausalLM",), read, "transformers models/kimi_linear; the checkpoint's own list"),)
