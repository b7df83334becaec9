"""What many architectures say in the same words of `config.json`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Experts, Indexer, Latent, Mlp
from sparkloom.inputs.checkpoint.recurrent import DeltaNet
from sparkloom.inputs.checkpoint.shape import Shape


@dataclass(frozen=True, slots=True)
class Reader:
    """One architecture: the names under which config.json calls it, and what it makes of the file."""

    names: tuple[str, ...]
    read: Callable[[Config], Shape]
    source: str  # whose code says so


def ends(config: Config) -> dict[str, Any]:
    """The model's own width, vocabulary and length."""
    text = config.text.about("model")
    said = config.about("model").value("tie_word_embeddings")
    tied = text.value("tie_word_embeddings") if said is None else said
    return {
        "hidden": text.number("hidden_size"),
        "vocab": text.number("vocab_size"),
        "context": text.number("max_position_embeddings", "model_max_length"),
        "tied": tied is True,
        "multimodal": config.section("vision_config") is not None,
    }


def attention(text: Config, **more: Any) -> Attention:
    facts = text.about("attention")
    heads, hidden = facts.number("num_attention_heads"), facts.number("hidden_size")
    return Attention(
        hidden=hidden,
        q_heads=heads,
        kv_heads=facts.maybe("num_key_value_heads") or heads,
        head_dim=facts.maybe("head_dim") or hidden // heads,
        **more,
    )


def latent(text: Config, **more: Any) -> Latent:
    facts = text.about("attention")
    return Latent(
        hidden=facts.number("hidden_size"),
        q_heads=facts.number("num_attention_heads"),
        q_rank=facts.count("q_lora_rank"),
        kv_rank=facts.number("kv_lora_rank"),
        nope=facts.number("qk_nope_head_dim"),
        rope=facts.number("qk_rope_head_dim"),
        v_dim=facts.number("v_head_dim"),
        **more,
    )


def indexer(text: Config, **more: Any) -> Indexer:
    facts = text.about("sparse")
    return Indexer(
        hidden=facts.number("hidden_size"),
        q_rank=facts.number("q_lora_rank"),
        heads=facts.number("index_n_heads"),
        head_dim=facts.number("index_head_dim"),
        top=facts.number("index_topk"),
        **more,
    )


def delta_net(text: Config) -> DeltaNet:
    facts = text.about("linear")
    return DeltaNet(
        hidden=facts.number("hidden_size"),
        k_heads=facts.number("linear_num_key_heads"),
        v_heads=facts.number("linear_num_value_heads"),
        k_dim=facts.number("linear_key_head_dim"),
        v_dim=facts.number("linear_value_head_dim"),
        conv=facts.number("linear_conv_kernel_dim"),
    )


def mlp(text: Config, *names: str, **more: Any) -> Mlp:
    return Mlp(text.number("hidden_size"), text.about("dense").number(*(names or ("intermediate_size",))), **more)


def experts(text: Config, **more: Any) -> Experts:
    """Widths under any of the words in use."""
    facts = text.about("experts")
    inter = facts.number("moe_intermediate_size", "intermediate_size")
    number = facts.count("n_shared_experts", "num_shared_experts")
    shared = facts.maybe("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    return Experts(
        **{
            "hidden": facts.number("hidden_size"),
            "routed": facts.number("n_routed_experts", "num_experts", "num_local_experts"),
            "active": facts.number(
                "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts"
            ),
            "inter": inter,
            "shared": number * inter if shared is None else shared,
            **more,
        }
    )


def layer_types(text: Config) -> list[str]:
    """One word per layer, or nothing."""
    count = text.about("layers").number("num_hidden_layers")
    return [str(word) for word in text.about("layers").per_layer(count, "layer_types")]
