"""MiMo-V2-Flash: sliding layers with heads and sinks of their own, values narrower than keys."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures import _common as common
from sparkloom.inputs.checkpoint.architectures._common import reads
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention
from sparkloom.inputs.checkpoint.shape import Shape


@reads("MiMoV2FlashForCausalLM", source="transformers models/mimo_v2_flash")
def read(config: Config) -> Shape:
    text, count = config.text, common.number_of_layers(config.text)
    slides = text.about("layers").per_layer(count, "hybrid_layer_pattern", numbers=True)
    routed = text.about("layers").per_layer(count, "moe_layer_freq", numbers=True)
    full, sliding = _mixer(text, ""), _mixer(text, "swa_")
    mixers = (sliding if slides[n] else full for n in range(count))
    forwards = (common.experts(text, router_bias=True) if routed[n] else common.mlp(text) for n in range(count))
    layers = common.layers("model", zip(mixers, forwards, strict=True))
    return common.model(config, "model", layers, unknown=("draft layers, if any, are not in config.json",))


def _mixer(text: Config, before: str) -> Attention:
    facts = text.about("attention")
    return Attention(
        hidden=facts.number("hidden_size"),
        q_heads=facts.number(f"{before}num_attention_heads"),
        kv_heads=facts.number(f"{before}num_key_value_heads"),
        head_dim=facts.number(f"{before}head_dim"),
        v_dim=facts.number(f"{before}v_head_dim"),
        window=facts.number("sliding_window") if before else 0,
        sinks=facts.flag("add_swa_attention_sink_bias" if before else "add_full_attention_sink_bias"),
    )
