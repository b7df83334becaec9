"""Parts that keep a state of fixed size per request instead of something per token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkloom.inputs.checkpoint.parts import Tensor, matrix, norm, vector


@dataclass(frozen=True, slots=True)
class Mamba2:
    hidden: int
    heads: int
    head_dim: int
    groups: int
    state: int
    conv: int
    bias: bool = False  # of the projections
    conv_bias: bool = True
    place: str = "mixer"
    window = 0
    kind = "mamba"

    @property
    def channels(self) -> int:
        return self.heads * self.head_dim + 2 * self.groups * self.state

    def tensors(self, at: str) -> Iterator[Tensor]:
        name, inner = f"{at}.{self.place}", self.heads * self.head_dim
        rows = inner + self.channels + self.heads
        yield matrix(f"{name}.in_proj", rows, self.hidden, "mamba")
        yield matrix(f"{name}.out_proj", self.hidden, inner, "mamba")
        if self.bias:
            yield vector(f"{name}.in_proj.bias", rows, "mamba")
            yield vector(f"{name}.out_proj.bias", self.hidden, "mamba")
        yield Tensor(f"{name}.conv1d.weight", (self.channels, 1, self.conv), "mamba", linear=False)
        if self.conv_bias:
            yield vector(f"{name}.conv1d.bias", self.channels, "mamba")
        for each in ("A_log", "D", "dt_bias"):
            yield vector(f"{name}.{each}", self.heads, "mamba", always="f32" if each != "dt_bias" else "")
        yield from norm(f"{name}.norm", inner)


@dataclass(frozen=True, slots=True)
class DeltaNet:
    """Gated delta net (Qwen3-Next and after): keys shared by several value heads."""

    hidden: int
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    conv: int
    place: str = "linear_attn"
    window = 0
    kind = "linear"

    @property
    def channels(self) -> int:
        return 2 * self.k_heads * self.k_dim + self.v_heads * self.v_dim

    def tensors(self, at: str) -> Iterator[Tensor]:
        name, values = f"{at}.{self.place}", self.v_heads * self.v_dim
        yield matrix(f"{name}.in_proj_qkv", self.channels, self.hidden, "linear")
        yield matrix(f"{name}.in_proj_z", values, self.hidden, "linear")
        yield matrix(f"{name}.in_proj_b", self.v_heads, self.hidden, "linear")
        yield matrix(f"{name}.in_proj_a", self.v_heads, self.hidden, "linear")
        yield matrix(f"{name}.out_proj", self.hidden, values, "linear")
        yield Tensor(f"{name}.conv1d.weight", (self.channels, 1, self.conv), "linear", linear=False)
        yield vector(f"{name}.A_log", self.v_heads, "linear")
        yield vector(f"{name}.dt_bias", self.v_heads, "linear")
        yield from norm(f"{name}.norm", self.v_dim)


@dataclass(frozen=True, slots=True)
class DeltaAttention:
    """Kimi delta attention: as many key heads as value heads, with decay and gate of low rank."""

    hidden: int
    heads: int
    head_dim: int
    conv: int
    rank: int = 0  # of decay and gate; 0 = one head's width
    place: str = "self_attn"
    window = 0
    kind = "linear"

    @property
    def k_heads(self) -> int:
        return self.heads

    @property
    def v_heads(self) -> int:
        return self.heads

    @property
    def channels(self) -> int:
        return 3 * self.heads * self.head_dim

    def tensors(self, at: str) -> Iterator[Tensor]:
        name, wide, rank = f"{at}.{self.place}", self.heads * self.head_dim, self.rank or self.head_dim
        for each in "qkv":
            yield matrix(f"{name}.{each}_proj", wide, self.hidden, "linear")
            yield Tensor(f"{name}.{each}_conv1d.weight", (wide, 1, self.conv), "linear", linear=False)
        for each in "fg":
            yield matrix(f"{name}.{each}_a_proj", rank, self.hidden, "linear")
            yield matrix(f"{name}.{each}_b_proj", wide, rank, "linear")
        yield matrix(f"{name}.b_proj", self.heads, self.hidden, "linear")
        yield matrix(f"{name}.o_proj", self.hidden, wide, "linear")
        yield vector(f"{name}.A_log", self.heads, "linear", always="f32")
        yield vector(f"{name}.dt_bias", wide, "linear", always="f32")
        yield from norm(f"{name}.o_norm", self.head_dim)
