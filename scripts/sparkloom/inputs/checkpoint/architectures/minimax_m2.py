"""MiniMax M2: experts in every layer, query and key norms over all heads together."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, attention, ends, experts
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.shape import Layer, Shape


def read(config: Config) -> Shape:
    text = config.text
    whole = text.about("attention").text_of("qk_norm_type") != "per_head"
    mixer = attention(text, norms="layer" if whole else "head")
    forward = experts(text, shared=0, router_bias=True, place="block_sparse_moe", names=("w1", "w3", "w2"))
    count = text.about("layers").number("num_hidden_layers")
    layers = tuple(Layer(f"model.layers.{n}", mixer, forward, mixer.hidden) for n in range(count))
    return Shape(layers=layers, unknown=_drafts(text), **ends(config))


def _drafts(text: Config) -> tuple[str, ...]:
    """The file names draft modules that the published checkpoints do not hold."""
    named = text.about("mtp").count("num_mtp_modules")
    return (f"config.json names {named} draft module(s); published checkpoints of M2 hold none",) if named else ()


READERS = (Reader(("MiniMaxM2ForCausalLM",), read, "vLLM model_executor/models/minimax_m2.py, transformers"),)
