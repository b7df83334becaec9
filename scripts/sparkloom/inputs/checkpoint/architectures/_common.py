"""What many architectures say in the same words of `config.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Attention, Experts, Forward, Mixer, Mlp
from sparkloom.inputs.checkpoint.shape import USUAL, Layer, Shape

# How some checkpoints call an expert's matrices.
W_NAMES: dict[str, Any] = {"gate": "w1", "up": "w3", "down": "w2"}
SPARSE_BLOCK = {"place": "block_sparse_moe", **W_NAMES}
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Reader:
    """One architecture: the names under which config.json calls it, and what it makes of the file."""

    names: tuple[str, ...]
    read: Callable[[Config], Shape]
    source: str  # whose code says so


def reads(*names: str, source: str) -> Callable[[Callable[[Config], Shape]], Reader]:
    """The function below is the reader of these architectures."""
    return lambda read: Reader(names, read, source)


def model(config: Config, at: str, layers: Iterable[Layer], **more: Any) -> Shape:
    """The layers with the model's own width, vocabulary and length, its ends where most checkpoints have them."""
    layers = tuple(layers)
    text = config.text.about("model")
    said = config.about("model").value("tie_word_embeddings")
    tied = text.value("tie_word_embeddings") if said is None else said
    usual = {
        "hidden": text.number("hidden_size"),
        "vocab": text.number("vocab_size"),
        "context": text.number("max_position_embeddings", "model_max_length"),
        "tied": tied is True,
        "multimodal": config.section("vision_config") is not None,
        "embedding": f"{at}.embed_tokens",
        "last_norm": f"{at}.norm",
    }
    return Shape(layers=layers, **{**usual, **more})


def number_of_layers(text: Config) -> int:
    return text.about("layers").number("num_hidden_layers")


def layer_types(text: Config) -> list[str]:
    """One word per layer, or nothing."""
    return [str(word) for word in text.about("layers").per_layer(number_of_layers(text), "layer_types")]


def every(text: Config, interval: int, usual: str) -> list[str]:
    """A word per layer where the file has none: each `interval`th one sees all."""
    return ["full_attention" if (n + 1) % interval == 0 else usual for n in range(number_of_layers(text))]


def part(kind: type[P], config: Config, **more: Any) -> P:
    """A part with the widths that config.json says in the words of `parts.yml`."""
    table = tensors.read("parts")[kind.__name__]
    facts = config.about(table["about"])
    widths = {
        field: facts.count(said[:-1]) if said.endswith("?") else facts.number(*said.split())
        for field, said in table["words"].items()
    }
    return kind(**{**widths, **more})


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


def mlp(text: Config, *names: str, **more: Any) -> Mlp:
    return Mlp(text.number("hidden_size"), text.about("dense").number(*(names or ("intermediate_size",))), **more)


def experts(text: Config, **more: Any) -> Experts:
    """With the width of the shared expert(s), which some files say and others count."""
    routed = part(Experts, text, **more)
    if "shared" in more:
        return routed
    facts = text.about("experts")
    number = facts.count("n_shared_experts", "num_shared_experts")
    width = facts.maybe("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    return replace(routed, shared=number * routed.inter if width is None else width)


def layers(at: str, parts: Iterable[tuple[Mixer, Forward]], norms: tuple[str, ...] = USUAL) -> list[Layer]:
    """Numbered from 0 below a place."""
    return [Layer(f"{at}.layers.{n}", mixer, forward, norms) for n, (mixer, forward) in enumerate(parts)]


def alike(text: Config, at: str, mixer: Mixer, forward: Forward) -> list[Layer]:
    """A model whose layers are all the same."""
    return layers(at, [(mixer, forward)] * number_of_layers(text))
