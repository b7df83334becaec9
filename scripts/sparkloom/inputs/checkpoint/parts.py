"""What a model's layers consist of: the tensors of each part, and what it keeps of a token or of a request.

A part knows nothing of any architecture: a reader (`architectures/`) says which parts a layer has and how wide they
are. Sums over the parts are the model's parameters; a checkpoint's own headers judge them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

Group = Literal[
    "embedding", "head", "attention", "linear", "mamba", "experts", "shared", "router", "latent", "dense", "norms",
    "vision", "draft", "tables", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor, or as many equal ones as `copies` says (`*` in the name is their number)."""

    name: str
    shape: tuple[int, ...]
    group: Group
    copies: int = 1
    linear: bool = True  # a matrix that tokens are multiplied with: what a packer may pack
    always: str = ""  # a type that it has whatever the packer did: f32, bf16, f8, i64
    scaled: int = 0  # numbers that share an exponent byte beside it; 0 = none do

    @property
    def elements(self) -> int:
        return prod(self.shape) * self.copies


def matrix(name: str, rows: int, columns: int, group: Group, copies: int = 1) -> Tensor:
    return Tensor(f"{name}.weight", (rows, columns), group, copies)


def vector(name: str, size: int, group: Group = "norms", always: str = "") -> Tensor:
    return Tensor(name, (size,), group, linear=False, always=always)


def norm(name: str, size: int, *, bias: bool = False) -> Iterator[Tensor]:
    if size:
        yield vector(f"{name}.weight", size)
        if bias:
            yield vector(f"{name}.bias", size)


def biased(name: str, rows: int, columns: int, group: Group, bias: bool = True) -> Iterator[Tensor]:
    yield matrix(name, rows, columns, group)
    if bias:
        yield vector(f"{name}.bias", rows, group)


@dataclass(frozen=True, slots=True)
class Choice:
    """Blocks of tokens that a layer looks at, chosen by keys of their own; the tensors stand with the layer."""

    heads: int
    head_dim: int  # of a key that the cache keeps for each block
    top: int  # blocks chosen
    block: int = 1  # tokens of one
    per_token: bool = True  # a key for each token; False = one for each block


@dataclass(frozen=True, slots=True)
class Attention:
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
    keeps: bool = True  # False: it reads an earlier layer's keys and values
    choice: Choice | None = None
    place: str = "self_attn"
    kind = "attention"

    @property
    def values(self) -> int:
        return self.v_dim or self.head_dim

    def tensors(self, at: str) -> Iterator[Tensor]:
        name = f"{at}.{self.place}"
        query, key, value = self.q_heads * self.head_dim, self.kv_heads * self.head_dim, self.kv_heads * self.values
        yield from biased(f"{name}.q_proj", query * (2 if self.gate else 1), self.hidden, "attention", self.bias)
        if self.keeps:
            yield from biased(f"{name}.k_proj", key, self.hidden, "attention", self.bias)
            if not self.no_values:
                yield from biased(f"{name}.v_proj", value, self.hidden, "attention", self.bias)
        yield from biased(f"{name}.o_proj", self.hidden, self.q_heads * self.values, "attention", self.out_bias)
        if self.norms:
            whole = self.norms == "layer"
            yield from norm(f"{name}.q_norm", query if whole else self.head_dim)
            if self.keeps:
                yield from norm(f"{name}.k_norm", key if whole else self.head_dim)
        if self.sinks:
            yield vector(f"{name}.sinks", self.q_heads, "attention")


@dataclass(frozen=True, slots=True)
class Indexer:
    """What chooses the tokens that a sparse attention looks at: a small head with keys of its own."""

    hidden: int
    q_rank: int
    heads: int
    head_dim: int
    top: int  # tokens (or blocks) chosen
    block: int = 1  # tokens that one choice stands for
    key_norm: Literal["bias", "plain", ""] = "bias"

    def tensors(self, at: str) -> Iterator[Tensor]:
        yield matrix(f"{at}.wq_b", self.heads * self.head_dim, self.q_rank, "attention")
        yield matrix(f"{at}.wk", self.head_dim, self.hidden, "attention")
        yield from norm(f"{at}.k_norm", self.head_dim if self.key_norm else 0, bias=self.key_norm == "bias")
        yield matrix(f"{at}.weights_proj", self.heads, self.hidden, "attention")


@dataclass(frozen=True, slots=True)
class Latent:
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
    gate: bool = False  # an output gate as wide as the values
    place: str = "self_attn"
    window = 0
    kind = "attention"

    def tensors(self, at: str) -> Iterator[Tensor]:
        name, wide = f"{at}.{self.place}", self.q_heads * (self.nope + self.rope)
        if self.q_rank:
            yield matrix(f"{name}.q_a_proj", self.q_rank, self.hidden, "attention")
            yield from norm(f"{name}.q_a_layernorm", self.q_rank)
            yield matrix(f"{name}.q_b_proj", wide, self.q_rank, "attention")
        else:
            yield matrix(f"{name}.q_proj", wide, self.hidden, "attention")
        yield matrix(f"{name}.kv_a_proj_with_mqa", self.kv_rank + self.rope, self.hidden, "attention")
        yield from norm(f"{name}.kv_a_layernorm", self.kv_rank)
        yield matrix(f"{name}.kv_b_proj", self.q_heads * (self.nope + self.v_dim), self.kv_rank, "attention")
        yield matrix(f"{name}.o_proj", self.hidden, self.q_heads * self.v_dim, "attention")
        if self.gate:
            yield matrix(f"{name}.g_proj", self.q_heads * self.v_dim, self.hidden, "attention")
        if self.indexer:
            yield from self.indexer.tensors(f"{name}.indexer")


@dataclass(frozen=True, slots=True)
class Mlp:
    """A plain feed-forward."""

    hidden: int
    inter: int
    gated: bool = True
    bias: bool = False
    place: str = "mlp"
    kind = "dense"

    def tensors(self, at: str) -> Iterator[Tensor]:
        for name in ("gate_proj", "up_proj") if self.gated else ("up_proj",):
            yield from biased(f"{at}.{self.place}.{name}", self.inter, self.hidden, "dense", self.bias)
        yield from biased(f"{at}.{self.place}.down_proj", self.hidden, self.inter, "dense", self.bias)


@dataclass(frozen=True, slots=True)
class Experts:
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
    expert: str = "experts"
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    shared_place: str = "shared_experts"
    kind = "moe"

    def tensors(self, at: str) -> Iterator[Tensor]:
        name, width = f"{at}.{self.place}" if self.place else at, self.latent or self.hidden
        yield matrix(f"{name}.{self.router}", self.routed, self.hidden, "router")
        if self.router_bias:
            yield vector(f"{name}.{self.router}.e_score_correction_bias", self.routed, "router", always="f32")
        gate, up, down = self.names
        for part in (gate, up) if self.gated else (up,):
            yield matrix(f"{name}.{self.expert}.*.{part}", self.inter, width, "experts", self.routed)
        yield matrix(f"{name}.{self.expert}.*.{down}", width, self.inter, "experts", self.routed)
        if self.biases:
            yield vector(f"{name}.{self.router}.bias", self.routed, "router")
            yield Tensor(f"{name}.{self.expert}.up_bias", (self.routed, 2 * self.inter), "experts", linear=False)
            yield Tensor(f"{name}.{self.expert}.down_bias", (self.routed, width), "experts", linear=False)
        if self.latent:
            yield matrix(f"{name}.fc1_latent_proj", self.latent, self.hidden, "latent")
            yield matrix(f"{name}.fc2_latent_proj", self.hidden, self.latent, "latent")
        yield from self._beside(name, at)

    def _beside(self, name: str, at: str) -> Iterator[Tensor]:
        if self.shared:
            for part in ("gate_proj", "up_proj") if self.gated else ("up_proj",):
                yield matrix(f"{name}.{self.shared_place}.{part}", self.shared, self.hidden, "shared")
            yield matrix(f"{name}.{self.shared_place}.down_proj", self.hidden, self.shared, "shared")
        if self.shared_gate:
            yield matrix(f"{name}.shared_expert_gate", 1, self.hidden, "shared")
        if self.dense:
            yield from self.dense.tensors(at)
