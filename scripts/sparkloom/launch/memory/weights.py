"""The tensors of a model in groups, and the bytes of each that one rank holds.

A group is what one precision and one way of splitting have in common. Small tensors (norms, biases, convolutions)
are left out: below a thousandth of the total.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sparkloom.inputs.profile import Experts, Model, Parallel, Precision
from sparkloom.launch.memory.figure import GIB

# Bytes per parameter. nvfp4: half a byte and one fp8 scale per 16; mxfp4: one per 32; int4: half a byte and two
# bf16-sized scales per 64; q2: llama.cpp's mixed 2-bit formats average 2.7 bits.
BYTES: dict[Precision, float] = {
    "nvfp4": 0.5625,
    "mxfp4": 0.53125,
    "fp8": 1.0,
    "bf16": 2.0,
    "fp32": 4.0,
    "int4": 0.5625,
    "q2": 0.34,
}
Read = Literal["always", "touched", "never"]  # per decode step; a row of the embedding is nothing


@dataclass(frozen=True, slots=True)
class TensorGroup:
    name: str
    bytes: float  # on the rank that holds most
    read: Read
    why: str


def tensors(model: Model, parallel: Parallel) -> tuple[TensorGroup, ...]:
    """Every group on the busiest rank, with its share of a pipeline's layers."""
    return _tensors(_Key(model, parallel.tp, parallel.pp))


def gib(model: Model, parallel: Parallel) -> float:
    if model.checkpoint.packing == "gguf" and model.checkpoint.size_gb:
        return model.checkpoint.size_gb * 1e9 / parallel.nodes / GIB  # a file's own mix of formats; layers are split
    return sum(group.bytes for group in tensors(model, parallel)) / GIB


def expert_bytes(model: Model, experts: Experts, precision: Precision | None = None) -> float:
    """One routed expert, whole."""
    width = experts.latent or model.hidden
    return _matrices(experts) * width * experts.inter * BYTES[precision or model.precision.experts or "bf16"]


def draft_gib(model: Model, parallel: Parallel) -> float:
    """The MTP layers that speculation loads beside the model; embedding and head are shared with it."""
    return sum(group.bytes for group in draft_layer(model, parallel)) * (model.mtp.layers if model.mtp else 0) / GIB


def draft_layer(model: Model, parallel: Parallel) -> tuple[TensorGroup, ...]:
    """One MTP layer: attention and a feed-forward of the model's own kind, in the precision of those layers."""
    if model.mtp is None:
        return ()
    kept = model.mtp.precision
    groups = [*_attention(model, parallel.tp, 1, kept)]
    if model.experts:
        groups += _moe(model, model.experts, parallel.tp, 1, kept)
    elif model.dense_inter:
        groups.append(
            TensorGroup("dense", 3 * model.hidden * model.dense_inter * BYTES[kept] / parallel.tp, "always", "")
        )
    return tuple(groups)


def kv_heads_per_rank(heads: int, tp: int) -> float:
    """A head is not split: with fewer heads than ranks each rank holds a copy of one."""
    return max(1.0, heads / tp)


@dataclass(frozen=True)
class _Key:
    """Models hold mappings and cannot be hashed; one object is one model for as long as it lives."""

    model: Model
    tp: int
    pp: int

    def __hash__(self) -> int:
        return hash((id(self.model), self.tp, self.pp))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.model is other.model and (self.tp, self.pp) == (other.tp, other.pp)


@lru_cache(maxsize=512)
def _tensors(key: _Key) -> tuple[TensorGroup, ...]:
    model, tp = key.model, key.tp
    layers = model.layers
    groups: list[TensorGroup] = []
    if layers.attention:
        groups += _attention(model, tp, layers.attention, model.precision.attention)
    if layers.sliding:
        groups += _attention(model, tp, layers.sliding, model.precision.attention, sliding=True)
    groups += _recurrent(model, tp)
    if model.experts:
        groups += _moe(model, model.experts, tp, layers.moe, None)
    if layers.dense and model.dense_inter:
        precision = model.precision.dense or model.precision.experts or model.precision.attention
        size = layers.dense * 3 * model.hidden * model.dense_inter * BYTES[precision] / tp
        groups.append(TensorGroup("dense", size, "always", f"feed-forward, {precision}, split over {tp}"))
    share = 1 / key.pp
    staged = [TensorGroup(g.name, g.bytes * share, g.read, g.why) for g in groups] if key.pp > 1 else groups
    return (*staged, *_vocabulary(model, tp, key.pp))


def _attention(model: Model, tp: int, layers: int, precision: Precision, *, sliding: bool = False) -> list[TensorGroup]:
    facts, hidden, size = model.attention, model.hidden, BYTES[precision]
    name = "sliding attention" if sliding else "attention"
    head = (facts.sliding_head_dim if sliding else None) or facts.head_dim
    wide = facts.q_heads * head
    if facts.kv_rank and not sliding:
        query = hidden * facts.q_rank / 1 + facts.q_rank * wide / tp if facts.q_rank else hidden * wide / tp
        own = query + (2 * facts.kv_rank * wide + wide * hidden) / tp + hidden * facts.kv_rank
        return [
            TensorGroup(name, layers * own * size, "always", f"latent attention, {precision}, heads split over {tp}")
        ]
    heads = kv_heads_per_rank((facts.sliding_kv_heads if sliding else None) or facts.kv_heads, tp)
    ends = hidden * wide * (3 if facts.output_gate else 2) / tp
    copies = 2 * hidden * heads * head
    return [
        TensorGroup(f"{name}: query, output", layers * ends * size, "always", f"{precision}, split over {tp}"),
        TensorGroup(
            f"{name}: key, value", layers * copies * size, "always", f"{precision}, {heads:g} head(s) per rank"
        ),
    ]


def _recurrent(model: Model, tp: int) -> list[TensorGroup]:
    groups, hidden = [], model.hidden
    if model.mamba:
        facts, precision = model.mamba, model.precision.mamba or model.precision.attention
        inner = facts.heads * facts.head_dim
        own = hidden * (2 * inner + 2 * facts.groups * facts.state + facts.heads) + inner * hidden
        size = model.layers.mamba * own * BYTES[precision] / tp
        groups.append(TensorGroup("mamba", size, "always", f"in and out projections, {precision}, split over {tp}"))
    if model.linear:
        line, precision = model.linear, model.precision.linear or model.precision.attention
        keys, values = line.k_heads * line.head_dim, line.v_heads * line.head_dim
        own = hidden * (2 * keys + 2 * values + 2 * line.v_heads) + values * hidden
        size = model.layers.linear * own * BYTES[precision] / tp
        groups.append(TensorGroup("linear attention", size, "always", f"projections, {precision}, split over {tp}"))
    return groups


def _moe(model: Model, experts: Experts, tp: int, layers: int, kept: Precision | None) -> list[TensorGroup]:
    precision = kept or model.precision.experts or "bf16"
    routed = layers * experts.routed * expert_bytes(model, experts, precision) / tp
    router = layers * model.hidden * experts.routed * BYTES["bf16"]
    groups = [
        TensorGroup(
            "experts", routed, "touched", f"{experts.routed} experts, {precision}, {tp} ranks hold equal parts"
        ),
        TensorGroup("router", router, "always", "bf16, a copy on every rank"),
    ]
    if experts.latent:
        size = layers * 2 * model.hidden * experts.latent * BYTES["bf16"]
        groups.append(TensorGroup("latent projections", size, "always", "bf16, a copy on every rank"))
    if experts.shared_inter:
        common = kept or model.precision.shared or precision
        size = layers * _matrices(experts) * model.hidden * experts.shared_inter * BYTES[common] / tp
        groups.append(TensorGroup("shared expert", size, "always", f"{common}, split over {tp}"))
    return groups


def _vocabulary(model: Model, tp: int, pp: int) -> list[TensorGroup]:
    """With a pipeline the first stage holds the embedding and the last one the head: the busiest has one of them."""
    precision = model.precision.embedding
    size = model.vocab * model.hidden * BYTES[precision] / tp
    head = TensorGroup("head", size, "always", f"{precision}, vocabulary split over {tp}")
    if model.tied_embeddings or pp > 1:
        return [head]
    return [TensorGroup("embedding", size, "never", f"{precision}, vocabulary split over {tp}"), head]


def _matrices(experts: Experts) -> int:
    return 3 if experts.gated else 2
