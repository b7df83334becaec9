"""A whole model: its layers' parts, the ends around them, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparkloom.inputs.checkpoint.parts import Experts, Forward, Mixer
from sparkloom.inputs.checkpoint.tensors import Tensor, norm

USUAL = ("input_layernorm", "post_attention_layernorm")


@dataclass(frozen=True, slots=True)
class Layer:
    """What mixes tokens, what feeds forward (either may be missing), and the norms around both."""

    at: str
    mixer: Mixer | None
    forward: Forward | None
    norms: tuple[str, ...] = USUAL
    more: tuple[Tensor, ...] = ()

    def tensors(self) -> Iterator[Tensor]:
        parts = [part for part in (self.mixer, self.forward) if part]
        for part in parts:
            yield from part.tensors(self.at)
        for name in self.norms if parts else ():
            yield from norm(f"{self.at}.{name}", parts[0].hidden)
        yield from self.more


@dataclass(frozen=True, slots=True)
class Shape:
    """What a reader makes of a `config.json`."""

    hidden: int
    vocab: int
    context: int
    layers: tuple[Layer, ...]
    tied: bool = False
    draft: tuple[Layer, ...] = ()  # multi-token prediction, in the same checkpoint
    draft_more: tuple[Tensor, ...] = ()
    vision: tuple[Tensor, ...] = ()
    tables: tuple[Tensor, ...] = ()  # looked up, not computed with: may live elsewhere
    other: tuple[Tensor, ...] = ()
    embedding: str = "model.embed_tokens"
    head: str = "lm_head"
    last_norm: str = "model.norm"
    multimodal: bool = False
    unknown: tuple[str, ...] = ()  # what this reader knows that it does not know

    def tensors(self) -> Iterator[Tensor]:
        yield Tensor(f"{self.embedding}.weight", (self.vocab, self.hidden), "embedding", linear=False)
        if not self.tied:
            yield Tensor(f"{self.head}.weight", (self.vocab, self.hidden), "head")
        yield from norm(self.last_norm, self.hidden) if self.last_norm else ()
        for layer in self.layers:
            yield from layer.tensors()
        yield from self.other
        yield from self.tables
        yield from self.vision
        for layer in self.draft:
            yield from (replace(tensor, group="draft") for tensor in layer.tensors())
        yield from (replace(tensor, group="draft") for tensor in self.draft_more)

    @property
    def active(self) -> int:
        """Parameters that a token meets: all of the language model's but the experts that it is not sent to."""
        idle = sum(
            tensor.elements * (1 - layer.forward.active / layer.forward.routed)
            for layer in self.layers
            if isinstance(layer.forward, Experts) and layer.forward.routed
            for tensor in layer.tensors()
            if tensor.group == "experts"
        )
        own = sum(t.elements for t in self.tensors() if t.group not in ("vision", "draft", "tables"))
        return round(own - idle)

    def experts(self) -> Experts | None:
        return next((layer.forward for layer in self.layers if isinstance(layer.forward, Experts)), None)
