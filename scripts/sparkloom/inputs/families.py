"""What a model's name alone tells, for rules: its architecture and the few facts that decide whether a kernel works.

A profile says more and is preferred where there is one; this table serves measured rows of models that ship
without a profile, and the facts that no profile has a place for (which layers of a checkpoint hold NVFP4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base import document

if TYPE_CHECKING:
    from sparkloom.inputs.profile import Model

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a checkpoint that rules ask for. None = not known, and then no rule may conclude from it."""

    multimodal: bool | None = None
    context: int | None = None
    q_heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    experts: int | None = None
    expert_inter: int | None = None
    gated: bool | None = None  # experts have a gate beside the up projection
    mixed: bool | None = None  # several precisions, listed per layer
    fp4_outside_experts: bool | None = None  # does a plain linear layer run through the FP4 GEMM?
    size_gb: float | None = None  # bytes of the checkpoint, 10^9, less what stays on disk
    weights_gib: tuple[tuple[str, float], ...] = ()  # measured per rank, by "tp4-ep4"
    mamba_slot_gib: float | None = None  # state of one slot on one rank at tp 1

    def weights_gib_per_rank(self, tp: int, pp: int, ep: int) -> float | None:
        """Measured where it was, else the checkpoint's size over the ranks: experts dominate, and copies share them."""
        measured = dict(self.weights_gib).get(f"tp{tp}-ep{ep}")
        if measured or self.size_gb is None:
            return measured
        return self.size_gb * 1e9 / GIB / (max(tp, ep) * pp)


@dataclass(frozen=True, slots=True)
class Family:
    """An entry of `families.yml`."""

    architecture: str
    facts: Facts


_READ: dict[str, Any] = document.own(Path(__file__).with_suffix(".yml").read_text())
# What a name says of its size: the first number of billions that is neither active (A17B) nor one expert's (17B-128E).
BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])(?!-\d+e)", re.IGNORECASE)
MULTIMODAL = re.compile(r"ForConditionalGeneration$|_Omni_|_VL_|VLChat|Llava")


@lru_cache(maxsize=512)
def family(model_id: str) -> Family:
    """The family of a model by its name; an empty one when nothing matches."""
    known = next((row for row in _READ["families"] if re.search(row["id"], model_id, re.IGNORECASE)), None)
    if known is None:
        return Family("", Facts())
    facts = dict(known.get("facts", {}))
    return Family(known["architecture"], Facts(weights_gib=tuple(facts.pop("weights_gib", {}).items()), **facts))


def least_size_gb(model_id: str, packing: str) -> float | None:
    """The least that the checkpoint of this name can weigh; None where its name tells neither size nor packing."""
    known = _READ["parameters"].items()
    billions = [size for name, size in known if re.search(name, model_id, re.IGNORECASE)]
    billions += map(float, BILLIONS.findall(model_id))
    if not billions or packing not in _READ["least_bytes"]:
        return None
    least: float = 0.5625 if "nvfp4" in model_id.lower() else _READ["least_bytes"][packing]
    return float(least * billions[0])


def facts_of(model: Model) -> Facts:
    """Facts of a profile's model, completed by its family's."""
    named = family(model.id)
    known = named.facts
    if named.architecture != model.architecture:  # GLM-5.3-Flash is no GLM-5: what that weighs says nothing here
        known = replace(known, weights_gib=())
    # A checkpoint that says its size is weighed by that; the name's figure is of another of the family.
    weighed = () if model.checkpoint.size_gb else known.weights_gib
    experts = model.experts
    return replace(
        known,
        multimodal=model.multimodal or bool(known.multimodal) or MULTIMODAL.search(model.architecture) is not None,
        context=model.context,
        q_heads=model.attention.q_heads,
        kv_heads=model.attention.kv_heads,
        head_dim=model.attention.head_dim,
        experts=experts.routed if experts else None,
        expert_inter=experts.inter if experts else None,
        gated=experts.gated if experts else None,
        mixed=model.checkpoint.mixed,
        size_gb=model.loaded_gb or known.size_gb,
        weights_gib=tuple(model.measured.weights_gib_per_rank.items()) or weighed,
        mamba_slot_gib=_mamba_slot_gib(model),
    )


def _mamba_slot_gib(model: Model) -> float | None:
    """fp32 SSM state of one slot: layers x heads x head size x state size x 4 bytes (the convolution adds 1 %)."""
    part = model.mamba
    if part is None:
        return None
    return model.layers.mamba * part.heads * part.head_dim * part.state * 4 * 1.013 / GIB
