"""Llama Nemotron (a search over blocks): each layer says how wide it is, and some lack a part."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import Reader, ends
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Mlp
from sparkloom.inputs.checkpoint.shape import Layer, Shape

MULTIPLE = 256  # widths are rounded up to it


def read(config: Config) -> Shape:
    text = config.text
    blocks = text.about("layers").items("block_configs")
    hidden = text.number("hidden_size")
    layers = []
    for number, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise text.refusal(f"block_configs[{number}] is no mapping")
        at = f"model.layers.{number}"
        mixer, forward = _mixer(text, Config(block, text.file)), _forward(hidden, Config(block, text.file))
        norms = (*(("input_layernorm",) if mixer else ()), *(("post_attention_layernorm",) if forward else ()))
        layers.append(Layer(at, mixer, forward, hidden, norms))
    return Shape(layers=tuple(layers), **ends(config))


def _mixer(text: Config, block: Config) -> Attention | None:
    said = block.section("attention")
    if said is None or said.flag("no_op"):
        return None
    if said.flag("replace_with_linear"):
        raise text.refusal("block_configs: a layer whose attention is one matrix; this reader does not know its width")
    facts = text.about("attention")
    heads, hidden = facts.number("num_attention_heads"), facts.number("hidden_size")
    head = facts.maybe("head_dim") or hidden // heads
    return Attention(hidden, heads, heads // said.number("n_heads_in_group"), head)


def _forward(hidden: int, block: Config) -> Mlp | None:
    said = block.section("ffn")
    if said is None or said.flag("no_op"):
        return None
    factor = said.value("ffn_mult")
    if not isinstance(factor, int | float):
        raise said.missing("ffn_mult")
    wide = int(2 * factor * hidden / 3)
    return Mlp(hidden, -(-wide // MULTIPLE) * MULTIPLE)


READERS = (Reader(("DeciLMForCausalLM",), read, "the checkpoints' own modeling_decilm.py, vLLM nemotron_nas.py"),)
