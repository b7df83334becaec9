"""What tensors are counted in, and those of softmax attention, of every kind that a layer can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparkloom.inputs.precision import weight
from sparkloom.inputs.profile import Indexer, Model, Precision

Read = Literal["always", "touched", "never"]  # per decode step; a row of the embedding is nothing


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """What one precision and one way of splitting have in common."""

    name: str
    bytes: float  # on the rank that holds most
    read: Read
    why: str


def kv_heads_per_rank(heads: int, tp: int) -> float:
    """A head is not split: with fewer heads than ranks each rank holds a copy of one."""
    return max(1.0, heads / tp)


def groups(model: Model, tp: int) -> list[TensorGroup]:
    """All softmax attention layers of a model, as the busiest rank holds them."""
    layers, kept = model.layers, model.precision.attention
    found: list[TensorGroup] = []
    if layers.attention:
        found += of(model, tp, layers.attention, kept)
    if layers.sparse:
        found += of(model, tp, layers.sparse, kept, name="sparse attention")
    for ratio, count in layers.compressed.items():
        found += _over_compressed(model, tp, int(ratio), count, kept)
    if layers.sliding:
        found += _sliding(model, tp, layers.sliding, kept)
    if indexer := model.attention.indexer:
        found.append(_indexer(model, indexer, kept))
    return found


def of(model: Model, tp: int, layers: int, precision: Precision, *, name: str = "attention") -> list[TensorGroup]:
    """So many layers of full attention; a sparse one has the same projections."""
    facts = model.attention
    if facts.kv_rank:
        own = _shared(model, tp) if model.layers.compressed else _latent(model, tp)
        why = f"latent attention, {precision}, heads split over {tp}"
        return [TensorGroup(name, layers * own * weight(precision), "always", why)]
    return _plain(name, model, tp, layers, precision, facts.q_heads, facts.kv_heads, facts.head_dim, facts.v_head_dim)


def _sliding(model: Model, tp: int, layers: int, precision: Precision) -> list[TensorGroup]:
    facts, name = model.attention, "sliding attention"
    if model.layers.compressed:  # one family: those layers are as the others, without a compressed cache
        size = layers * _shared(model, tp) * weight(precision)
        return [TensorGroup(name, size, "always", f"one key and value, {precision}, heads split over {tp}")]
    head = facts.sliding_head_dim or facts.head_dim
    value = facts.sliding_v_head_dim or (None if facts.sliding_head_dim else facts.v_head_dim)
    queries, keys = facts.sliding_q_heads or facts.q_heads, facts.sliding_kv_heads or facts.kv_heads
    return _plain(name, model, tp, layers, precision, queries, keys, head, value)


def _plain(
    name: str,
    model: Model,
    tp: int,
    layers: int,
    precision: Precision,
    queries: int,
    keys: int,
    head: int,
    value: int | None,
) -> list[TensorGroup]:
    hidden, size, value = model.hidden, weight(precision), value or head
    heads = kv_heads_per_rank(keys, tp)
    per_rank = f"{heads:g} heads per rank"
    gates = 2 if model.attention.output_gate else 1
    ends = hidden * (queries * head * gates + queries * value) / tp
    copies = hidden * heads * (head + value)
    return [
        TensorGroup(f"{name}: query, output", layers * ends * size, "always", f"{precision}, split over {tp}"),
        TensorGroup(f"{name}: key, value", layers * copies * size, "always", f"{precision}, {per_rank}"),
    ]


def _query(model: Model, tp: int) -> float:
    facts, wide = model.attention, model.attention.q_heads * model.attention.head_dim
    if facts.q_rank:
        return model.hidden * facts.q_rank / 1 + facts.q_rank * wide / tp
    return model.hidden * wide / tp


def _latent(model: Model, tp: int) -> float:
    """Multi-head latent attention: keys and values of all heads come out of one narrow vector."""
    facts, hidden, rank = model.attention, model.hidden, model.attention.kv_rank or 0
    wide = facts.q_heads * facts.head_dim
    if facts.rope_dim is None or facts.v_head_dim is None:  # the widths of one head are not known apart
        return _query(model, tp) + (2 * rank * wide + wide * hidden) / tp + hidden * rank
    values = facts.q_heads * facts.v_head_dim
    inner = rank - facts.rope_dim
    unpacked = inner * (facts.q_heads * (facts.head_dim - facts.rope_dim) + values)
    return _query(model, tp) + (unpacked + values * hidden) / tp + hidden * rank


def _shared(model: Model, tp: int) -> float:
    """DeepSeek-V4: one vector per token is key and value of all heads; the output goes through groups of heads."""
    facts, hidden = model.attention, model.hidden
    wide, kept = facts.q_heads * facts.head_dim, facts.kv_rank or facts.head_dim
    out = wide * hidden
    if facts.o_rank:
        out = wide * facts.o_rank + (facts.o_groups or 1) * facts.o_rank * hidden
    return _query(model, tp) + hidden * kept + out / tp


def _over_compressed(model: Model, tp: int, ratio: int, layers: int, precision: Precision) -> list[TensorGroup]:
    facts, name = model.attention, f"attention over 1/{ratio}"
    chosen = facts.indexer is not None and facts.indexer.ratio == ratio
    size = layers * _shared(model, tp) * weight(precision)
    # Two projections make an entry of a group of tokens; where an indexer chooses, groups overlap.
    entry = 2 * model.hidden * (facts.kv_rank or facts.head_dim) * (2 if chosen else 1)
    return [
        TensorGroup(name, size, "always", f"one key and value, {precision}, heads split over {tp}"),
        TensorGroup(f"{name}: compressor", layers * entry * weight("bf16"), "always", "bf16, a copy on every rank"),
    ]


def _indexer(model: Model, facts: Indexer, precision: Precision) -> TensorGroup:
    wide = facts.heads * facts.head_dim
    queries = (model.attention.q_rank or model.hidden) * wide
    keys = model.hidden * facts.head_dim * (4 if facts.ratio else 1)  # with a compressor of its own
    size = (queries + keys) * weight(precision) + model.hidden * facts.heads * weight("bf16")
    return TensorGroup("indexer", indexers(model) * size, "always", f"{precision}, a copy on every rank")


def indexers(model: Model) -> int:
    """Layers that keep keys of an indexer."""
    facts = model.attention.indexer
    if facts is None:
        return 0
    having = model.layers.sparse if facts.ratio is None else model.layers.compressed[str(facts.ratio)]
    return facts.layers or having
