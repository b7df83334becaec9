"""DeepSeek V4's attention: one shared head, most layers reading tokens that were compressed in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sparkloom.inputs.checkpoint.parts import Tensor, matrix, norm, vector


@dataclass(frozen=True, slots=True)
class Compressed:
    """`ratio`: tokens that one cached entry stands for; 0 = the window only, 1 = every token."""

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
    index_keys: Literal["compressor", "latent", "none"] = "compressor"  # what the indexer's keys are made of
    place: str = "attn"
    kind = "compressed"

    @property
    def overlapping(self) -> bool:
        """Blocks of four overlap: each has two sets of weights."""
        return self.ratio == 4

    def tensors(self, at: str) -> Iterator[Tensor]:
        name, wide = f"{at}.{self.place}", self.q_heads * self.head_dim
        yield matrix(f"{name}.wq_a", self.q_rank, self.hidden, "attention")
        yield from norm(f"{name}.q_norm", self.q_rank)
        yield matrix(f"{name}.wq_b", wide, self.q_rank, "attention")
        yield matrix(f"{name}.wkv", self.head_dim, self.hidden, "attention")
        yield from norm(f"{name}.kv_norm", self.head_dim)
        yield matrix(f"{name}.wo_a", self.o_groups * self.o_rank, wide // self.o_groups, "attention")
        yield matrix(f"{name}.wo_b", self.hidden, self.o_groups * self.o_rank, "attention")
        yield vector(f"{name}.attn_sink", self.q_heads, "attention", always="f32")
        if self.ratio and self.stores:
            yield from self._compressor(f"{name}.compressor", self.head_dim)
        if self.index_heads:
            yield from self._indexer(f"{name}.indexer")

    def _indexer(self, name: str) -> Iterator[Tensor]:
        yield matrix(f"{name}.wq_b", self.index_heads * self.index_dim, self.q_rank, "attention")
        yield Tensor(f"{name}.weights_proj.weight", (self.index_heads, self.hidden), "attention", linear=False)
        if self.index_keys == "compressor":
            yield from self._compressor(f"{name}.compressor", self.index_dim)
        elif self.index_keys == "latent":
            yield Tensor(f"{name}.wk.weight", (self.index_dim, self.head_dim), "attention", linear=False)
            yield from norm(f"{name}.k_norm", self.index_dim)

    def _compressor(self, name: str, width: int) -> Iterator[Tensor]:
        wide = width * (2 if self.overlapping else 1)
        if self.index_keys == "compressor":  # V4; V4.1 has no positions here, and pairs of tokens at most
            yield Tensor(f"{name}.ape", (self.ratio, wide), "attention", linear=False, always="f32")
        for each in ("wkv", "wgate") if self.ratio > 1 else ("wkv",):
            yield Tensor(f"{name}.{each}.weight", (wide, self.hidden), "attention", linear=False, always="bf16")
        yield from norm(f"{name}.norm", width)
