"""What a model's layers consist of: the tensors of each part, and how wide they are.

A part knows nothing of any architecture: a reader (`architectures/`) says which parts a layer has. `parts.yml` lists
the tensors of most. Sums over the parts are the model's parameters; a checkpoint's own headers judge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sparkloom.inputs.checkpoint import tensors
from sparkloom.inputs.checkpoint.tensors import Tensor, listed


class Listed:
    """A part whose tensors are its table's; its own fields are the widths, and the words behind a `$`."""

    __slots__ = ()
    place: str

    def tensors(self, at: str) -> Iterator[Tensor]:
        table = tensors.read("parts")[type(self).__name__]
        rows = {re.sub(r"\$(\w+)", self._word, row): said for row, said in table["tensors"].items()}
        place = f"{at}.{self.place}" if self.place else at
        yield from listed(place, rows, lambda word: int(getattr(self, word)), table["group"])

    def _word(self, named: re.Match[str]) -> str:
        return str(getattr(self, named[1]))


@dataclass(frozen=True, slots=True)
class Choice:
    """Blocks of tokens that a layer looks at, chosen by keys of their own; the tensors stand with the layer."""

    heads: int
    head_dim: int  # of a key that the cache keeps for each block
    top: int  # blocks chosen
    block: int = 1  # tokens of one
    per_token: bool = True  # a key for each token; False = one for each block


@dataclass(frozen=True, slots=True)
class Attention(Listed):
    """Softmax attention with keys and values per head."""

    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    v_dim: int = 0  # of a value's head, where it is not the key's
    window: int = 0  # tokens that a sliding layer sees; 0 = all
    gate: bool = False  # the query projection makes an output gate too
    bias: bool = False  # of query, key and value
    out_bias: bool = False
    norms: Literal["", "head", "layer"] = ""  # of queries and keys
    sinks: bool = False
    no_values: bool = False  # values are the keys: no projection of their own
    choice: Choice | None = None
    place: str = "self_attn"
    kind = "attention"

    @property
    def values(self) -> int:
        return self.v_dim or self.head_dim

    @property
    def q_norm(self) -> int:
        return {"": 0, "head": self.head_dim, "layer": self.q_heads * self.head_dim}[self.norms]

    @property
    def k_norm(self) -> int:
        return {"": 0, "head": self.head_dim, "layer": self.kv_heads * self.head_dim}[self.norms]


@dataclass(frozen=True, slots=True)
class Indexer(Listed):
    """What chooses the tokens that a sparse attention looks at: a small head with keys of its own."""

    hidden: int
    q_rank: int
    heads: int
    head_dim: int
    top: int  # tokens (or blocks) chosen
    block: int = 1  # tokens that one choice stands for
    place: str = "indexer"


@dataclass(frozen=True, slots=True)
class Latent(Listed):
    """Attention over one compressed vector per token (MLA), the whole of it on every rank."""

    hidden: int
    q_heads: int
    q_rank: int  # 0 = queries are not compressed
    kv_rank: int
    nope: int  # width of a key's head without positions
    rope: int
    v_dim: int
    indexer: Indexer | None = None
    chosen: bool = False  # tokens are chosen, by this layer's indexer or by an earlier one's
    place: str = "self_attn"
    kind = "attention"

    def tensors(self, at: str) -> Iterator[Tensor]:
        yield from Listed.tensors(self, at)
        if self.indexer:
            yield from self.indexer.tensors(f"{at}.{self.place}")


@dataclass(frozen=True, slots=True)
class Mlp(Listed):
    """A plain feed-forward."""

    hidden: int
    inter: int
    gated: bool = True
    bias: bool = False
    place: str = "mlp"
    kind = "dense"


@dataclass(frozen=True, slots=True)
class Experts(Listed):
    """A router over many small feed-forwards, perhaps with one that every token takes."""

    hidden: int
    routed: int
    active: int
    inter: int
    shared: int = 0  # width of the shared expert(s) together
    shared_gate: bool = False
    latent: int = 0  # the experts' own width, where it is not the model's
    gated: bool = True
    router_bias: bool = False  # a correction per expert
    biases: bool = False  # of the experts' matrices and the router (gpt-oss)
    dense: Mlp | None = None  # a plain feed-forward beside the experts (Gemma 4)
    place: str = "mlp"
    router: str = "gate"
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    shared_place: str = "shared_experts"
    kind = "moe"

    @property
    def width(self) -> int:
        return self.latent or self.hidden

    def tensors(self, at: str) -> Iterator[Tensor]:
        yield from Listed.tensors(self, at)
        if self.dense:
            yield from self.dense.tensors(at)


@dataclass(frozen=True, slots=True)
class Compressed(Listed):
    """DeepSeek V4's attention: one shared head, most layers reading tokens that were compressed in blocks.

    `ratio`: tokens that one cached entry stands for; 0 = the window only, 1 = every token.
    """

    hidden: int
    q_heads: int
    q_rank: int
    head_dim: int
    rope: int
    o_rank: int
    o_groups: int
    window: int
    ratio: int
    index_heads: int = 0  # 0 = this layer chooses nothing
    index_dim: int = 0
    index_top: int = 0
    stores: bool = True  # False: it reads the entries of the last layer before it that stores (V4.1)
    # What is compressed has positions, and the indexer's keys are made so, too. False: V4.1's, which compress pairs of
    # tokens at most; indexers of layers that store make their keys of what is stored.
    positions: bool = True
    place: str = "attn"
    kind = "compressed"

    @property
    def sets(self) -> int:
        """Of weights: blocks of four overlap, and each has two."""
        return 2 if self.ratio == 4 else 1


@dataclass(frozen=True, slots=True)
class Mamba2(Listed):
    """A state of fixed size per request instead of something per token; likewise the two after it."""

    hidden: int
    heads: int
    head_dim: int
    groups: int
    state: int
    conv: int
    bias: bool = False  # of the projections
    conv_bias: bool = True
    place: str = "mixer"
    kind = "mamba"

    @property
    def channels(self) -> int:
        return self.heads * self.head_dim + 2 * self.groups * self.state

    @property
    def projected(self) -> int:
        return self.heads * self.head_dim + self.channels + self.heads


@dataclass(frozen=True, slots=True)
class DeltaNet(Listed):
    """Gated delta net (Qwen3-Next and after): keys shared by several value heads."""

    hidden: int
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    conv: int
    place: str = "linear_attn"
    kind = "linear"

    @property
    def channels(self) -> int:
        return 2 * self.k_heads * self.k_dim + self.v_heads * self.v_dim


@dataclass(frozen=True, slots=True)
class DeltaAttention(Listed):
    """Kimi delta attention: as many key heads as value heads, with decay and gate of low rank."""

    hidden: int
    k_heads: int
    v_heads: int
    v_dim: int
    conv: int
    place: str = "self_attn"
    kind = "linear"


Mixer = Attention | Latent | Compressed | Mamba2 | DeltaNet | DeltaAttention
Forward = Mlp | Experts
