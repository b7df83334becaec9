"""Qwen3-Next, Qwen3.5, 3.6 and 3.8: three layers of gated delta net for each of gated attention."""

from __future__ import annotations

from sparkloom.inputs.checkpoint.architectures._common import (
    Reader,
    attention,
    delta_net,
    ends,
    experts,
    layer_types,
    mlp,
)
from sparkloom.inputs.checkpoint.architectures._qwen_vision import tower
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, matrix, norm
from sparkloom.inputs.checkpoint.shape import Forward, Layer, Shape

SHARED = {"shared_gate": True, "shared_place": "shared_expert"}


def read(config: Config) -> Shape:
    text, vision = config.text, config.section("vision_config")
    at = "model.language_model" if vision else "model"
    full, line = attention(text, norms="head", gate=_gated(text)), delta_net(text)
    forward = forward_of(text)
    layers = tuple(
        Layer(f"{at}.layers.{n}", full if word == "full_attention" else line, forward, full.hidden)
        for n, word in enumerate(_words(text))
    )
    drafts = text.about("mtp").count("mtp_num_hidden_layers", "num_nextn_predict_layers")
    drafts = drafts or (1 if text.text_of("model_type") == "qwen3_next" else 0)
    return Shape(
        layers=layers,
        draft=tuple(Layer(f"mtp.layers.{n}", full, forward, full.hidden) for n in range(drafts)),
        draft_more=tuple(joint(full.hidden)) if drafts else (),
        vision=tuple(tower(vision)) if vision else (),
        embedding=f"{at}.embed_tokens",
        last_norm=f"{at}.norm",
        **ends(config),
    )


def joint(hidden: int) -> list[Tensor]:
    """What joins a token's embedding and the last layer's output before the draft layer."""
    names = ("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm")
    return [matrix("mtp.fc", hidden, 2 * hidden, "draft"), *(t for name in names for t in norm(name, hidden))]


def forward_of(text: Config) -> Forward:
    return experts(text, **SHARED) if text.maybe("num_experts") else mlp(text)


def _gated(text: Config) -> bool:
    """Qwen3-Next always has an output gate and does not say so."""
    return text.about("attention").value("attn_output_gate") is not False


def _words(text: Config) -> list[str]:
    said = layer_types(text)
    if said:
        return said
    count, every = text.number("num_hidden_layers"), text.about("layers").maybe("full_attention_interval") or 4
    return ["linear_attention" if (n + 1) % every else "full_attention" for n in range(count)]


READERS = (
    Reader(
        (
            "Qwen3NextForCausalLM",
            "Qwen3_5ForConditionalGeneration",
            "Qwen3_5MoeForConditionalGeneration",
        ),
        read,
        "transformers models/qwen3_next, qwen3_5, qwen3_5_moe",
    ),
)
