"""What tensors are counted in: a group is what one precision and one way of splitting have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Read = Literal["always", "touched", "never"]  # per decode step; a row of the embedding is nothing


@dataclass(frozen=True, slots=True)
class TensorGroup:
    name: str
    bytes: float  # on the rank that holds most
    read: Read
    why: str


def kv_heads_per_rank(heads: int, tp: int) -> float:
    """A head is not split: with fewer heads than ranks each rank holds a copy of one."""
    return max(1.0, heads / tp)
