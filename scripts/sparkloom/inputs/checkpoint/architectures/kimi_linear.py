"""Kimi Linear: three layers of delta attention for each of latent attention, then experts."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import Reader
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import DeltaAttention, Latent
from sparkloom.inputs.checkpoint.shape import Forward, Shape


def read(config: Config) -> Shape:
    text = config.text
    line, whole = text.mapping("linear_attn_config"), common.part(Latent, text)
    delta = common.part(DeltaAttention, line, hidden=whole.hidden)
    full = line.about("layers").items("full_attn_layers")  # counted from 1
    numbers = range(common.number_of_layers(text))
    parts = ((whole if n + 1 in full else delta, _forward(text, n)) for n in numbers)
    return common.model(config, "model", common.layers("model", parts))


def _forward(text: Config, number: int) -> Forward:
    if number < text.about("layers").count("first_k_dense_replace"):
        return common.mlp(text)
    return common.experts(text, router_bias=True, **common.SPARSE_BLOCK)


READERS = (Reader(("KimiLinearForCausalLM",), read, "transformers models/kimi_linear; the checkpoint's own list"),)
