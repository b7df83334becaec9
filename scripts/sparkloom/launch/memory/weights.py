"""The tensors of a model in groups, and the bytes of each that one rank holds.

A group is what one precision and one way of splitting have in common. Small tensors (norms, biases, convolutions)
are left out: below a thousandth of the total.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sparkloom.inputs.precision import weight
from sparkloom.inputs.profile import Experts, Model, Parallel, Precision
from sparkloom.launch.memory import attention, constants
from sparkloom.launch.memory.attention import TensorGroup
from sparkloom.launch.memory.constants import GIB
from sparkloom.launch.view import ModelView

LINEAR = ("experts", "shared", "dense", "attention", "mamba", "linear")  # what `quantization: fp8` takes
# Words of the fork flag `mxfp4_layers`, and what of a model each of them is.
MXFP4 = {"moe": "experts", "qkv": "attention", "o": "attention", "lm_head": "embedding"}


def held(view: ModelView) -> Model:
    """The model as this launch holds it: some flags make stored weights thinner while they are loaded."""
    quantization, layers = view.text("quantization"), view.text("mxfp4_layers")
    return _held(view.model, quantization, layers) if quantization == "fp8" or layers else view.model


@lru_cache(maxsize=128)
def _held(model: Model, quantization: str, layers: str) -> Model:
    stored = model.precision.model_dump()
    thinner: dict[str, Precision] = {}
    if quantization == "fp8" and model.checkpoint.packing == "bf16":
        thinner = {part: "fp8" for part in LINEAR if stored[part] in ("bf16", "fp16")}
    parts = {MXFP4[word] for word in layers.replace(" ", "").split(",") if word in MXFP4}
    thinner |= {part: "mxfp4" for part in parts if stored[part] in ("bf16", "fp16")}
    if not thinner:
        return model
    return model.model_copy(update={"precision": model.precision.model_copy(update=thinner)})


def tensors(model: Model, parallel: Parallel) -> tuple[TensorGroup, ...]:
    """Every group on the busiest rank, with its share of a pipeline's layers."""
    return _tensors(model, parallel.tp, parallel.pp, parallel.expert_ranks)


def gib(model: Model, parallel: Parallel) -> float:
    if model.checkpoint.packing == "gguf" and model.loaded_gb:
        return model.loaded_gb * 1e9 / parallel.nodes / GIB  # a file's own mix of formats; layers are split
    return sum(group.bytes for group in tensors(model, parallel)) / GIB


@dataclass(frozen=True, slots=True)
class Disagreement:
    ratio: float  # size of the checkpoint / weights from the facts
    text: str


def disagreement(model: Model) -> Disagreement | None:
    """Where a model's facts and the size of its checkpoint cannot both be right."""
    size = model.loaded_gb
    if not size or model.checkpoint.packing == "gguf":
        return None
    computed = gib(model, Parallel(nodes=1, tp=1)) * GIB / 1e9
    if abs(computed / size - 1) <= constants.WEIGHTS_AGREE:
        return None
    text = f"layers, widths and precisions make {computed:.1f} GB of weights, checkpoint.size_gb says {size:g}"
    if size != model.checkpoint.size_gb:
        text += " for what comes into memory"
    return Disagreement(size / computed, text)


def expert_bytes(model: Model, experts: Experts, precision: Precision | None = None) -> float:
    """One routed expert, whole."""
    width = experts.latent or model.hidden
    return _matrices(experts) * width * experts.inter * weight(precision or model.precision.experts or "bf16")


def draft_gib(model: Model, parallel: Parallel) -> float:
    """The MTP layers that speculation loads beside the model; embedding and head are shared with it."""
    if model.mtp and model.mtp.size_gb:
        return model.mtp.size_gb * 1e9 / parallel.tp / GIB
    return sum(group.bytes for group in draft_layer(model, parallel)) * (model.mtp.layers if model.mtp else 0) / GIB


def draft_layer(model: Model, parallel: Parallel) -> tuple[TensorGroup, ...]:
    """One MTP layer: attention and a feed-forward of the model's own kind, in the precision of those layers."""
    if model.mtp is None:
        return ()
    kept = model.mtp.precision
    groups = attention.of(model, parallel.tp, 1, kept)
    if model.experts:
        groups += _moe(model, model.experts, parallel.tp, parallel.expert_ranks, 1, kept)
    elif model.dense_inter:
        size = 3 * model.hidden * model.dense_inter * weight(kept) / parallel.tp
        groups.append(TensorGroup("dense", size, "always", ""))
    return tuple(groups)


@lru_cache(maxsize=512)
def _tensors(model: Model, tp: int, pp: int, spread: int) -> tuple[TensorGroup, ...]:
    """`spread`: ranks that the routed experts are dealt to."""
    layers = model.layers
    groups = [*attention.groups(model, tp), *_recurrent(model, tp)]
    if model.experts:
        groups += _moe(model, model.experts, tp, spread, layers.moe, None)
    if layers.dense and model.dense_inter:
        precision = model.precision.dense or model.precision.experts or model.precision.attention
        size = layers.dense * 3 * model.hidden * model.dense_inter * weight(precision) / tp
        groups.append(TensorGroup("dense", size, "always", f"feed-forward, {precision}, split over {tp}"))
    share = 1 / pp
    staged = [TensorGroup(g.name, g.bytes * share, g.read, g.why) for g in groups] if pp > 1 else groups
    return (*staged, *_vocabulary(model, tp, pp), *_parts(model, tp))


def _recurrent(model: Model, tp: int) -> list[TensorGroup]:
    groups, hidden = [], model.hidden
    if model.mamba:
        facts, precision = model.mamba, model.precision.mamba or model.precision.attention
        inner = facts.heads * facts.head_dim
        own = hidden * (2 * inner + 2 * facts.groups * facts.state + facts.heads) + inner * hidden
        size = model.layers.mamba * own * weight(precision) / tp
        groups.append(TensorGroup("mamba", size, "always", f"in and out projections, {precision}, split over {tp}"))
    if model.linear:
        line, precision = model.linear, model.precision.linear or model.precision.attention
        keys, values = line.k_heads * line.head_dim, line.v_heads * line.head_dim
        own = hidden * (2 * keys + 2 * values + 2 * line.v_heads) + values * hidden
        size = model.layers.linear * own * weight(precision) / tp
        groups.append(TensorGroup("linear attention", size, "always", f"projections, {precision}, split over {tp}"))
    return groups


def _moe(
    model: Model, experts: Experts, tp: int, spread: int, layers: int, kept: Precision | None
) -> list[TensorGroup]:
    precision = kept or model.precision.experts or "bf16"
    routed = layers * experts.routed * expert_bytes(model, experts, precision) / spread
    router = layers * model.hidden * experts.routed * weight("bf16")
    held = f"{spread} ranks hold equal parts"
    groups = [
        TensorGroup("experts", routed, "touched", f"{experts.routed} experts, {precision}, {held}"),
        TensorGroup("router", router, "always", "bf16, a copy on every rank"),
    ]
    if experts.latent:
        size = layers * 2 * model.hidden * experts.latent * weight("bf16")
        groups.append(TensorGroup("latent projections", size, "always", "bf16, a copy on every rank"))
    if experts.shared_inter:
        common = kept or model.precision.shared or precision
        size = layers * _matrices(experts) * model.hidden * experts.shared_inter * weight(common) / tp
        groups.append(TensorGroup("shared expert", size, "always", f"{common}, split over {tp}"))
    return groups


def _vocabulary(model: Model, tp: int, pp: int) -> list[TensorGroup]:
    """With a pipeline the first stage holds the embedding and the last one the head: the busiest has one of them."""
    precision = model.precision.embedding
    size = model.vocab * model.hidden * weight(precision) / tp
    head = TensorGroup("head", size, "always", f"{precision}, vocabulary split over {tp}")
    if model.tied_embeddings or pp > 1:
        return [head]
    return [TensorGroup("embedding", size, "never", f"{precision}, vocabulary split over {tp}"), head]


def _matrices(experts: Experts) -> int:
    return 3 if experts.gated else 2


def _parts(model: Model, tp: int) -> Iterator[TensorGroup]:
    """What lies beside the layers in memory; a table on disk and what is never loaded take none."""
    for name, part in model.parts.items():
        if part.lives == "memory":
            how = f"split over {tp}" if part.split else "a copy on every rank"
            yield TensorGroup(name, part.size_gb * 1e9 / (tp if part.split else 1), "never", f"as stored, {how}")
