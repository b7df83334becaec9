"""Bytes that the busiest rank must move through its memory for one decode step."""

from __future__ import annotations

import math
import re

from sparkloom.inputs.precision import weight
from sparkloom.inputs.profile import Model, Precision
from sparkloom.launch.memory import constants, state, weights
from sparkloom.launch.memory.constants import Requirements
from sparkloom.launch.view import ModelView

# Expected maximum of k equal normal variables, in standard deviations: how far the unluckiest of k ranks is off.
_UNLUCKIEST = {1: 0.0, 2: 0.5642, 3: 0.8463, 4: 1.0294, 5: 1.1630, 6: 1.2672, 7: 1.3522, 8: 1.4236}


def touched(routed: int, active: int, positions: float) -> float:
    """Distinct experts that `positions` tokens wake, each choosing `active` of `routed` on its own."""
    return routed * (1 - math.pow(1 - active / routed, positions))


def busiest_share(distinct: float, routed: int, ranks: int) -> float:
    """Experts on the rank with most of them, when whole experts are dealt to `ranks` ranks."""
    mean = distinct / ranks
    spread = math.sqrt(max(0.0, mean * (1 - 1 / ranks) * (1 - distinct / routed)))
    return min(mean + _UNLUCKIEST.get(ranks, 1.5) * spread, routed / ranks)


def step_bytes(
    view: ModelView,
    needs: Requirements,
    requests: float,
    positions: int = 1,
    live: float | None = None,
    apart: float = 1.0,
) -> float:
    """One step for `requests` requests, each with `positions` tokens to compute (draft tokens in a verification).

    `live`: tokens of context that each has, where they are known. `apart`: the share of the tokens that choose experts
    on their own; the others wake the same ones."""
    model, parallel = weights.held(view), view.parallel
    always = sum(group.bytes for group in weights.tensors(model, parallel) if group.read == "always")
    live = constants.LIVE_TOKENS.number if live is None else live
    # Of the busiest copy; experts that all copies share see every request.
    own = requests if parallel.dp == 1 else max(1.0, requests / parallel.dp)
    context = own * state.kv_read_per_request(model, parallel, needs.kv_element, live)
    # Read once, written once per position: verification keeps the state after every draft token.
    slots = own * state.slot_bytes(model, parallel, needs.state_element) * (1 + positions)
    return always + _experts(view, max(1.0, requests * positions * apart)) + context + slots


def fewest_bytes(view: ModelView, needs: Requirements) -> float:
    """Less than this no token's step moves, over all stages of a pipeline: one request's, without context.

    All tokens of a batch may choose the same experts, and those may lie evenly on the ranks; drafting may cost nothing
    (n-grams); a verification may write the state once."""
    model, parallel = _thinnest(view), view.parallel
    groups = [group for group in weights.tensors(model, parallel) if group.read == "always"]
    always = sum(group.bytes * (1 if group.name == "head" else parallel.pp) for group in groups)
    states = 2 * state.slot_bytes(model, parallel, needs.state_element) * parallel.pp
    experts = 0.0
    if model.experts:
        each = weights.expert_bytes(model, model.experts)
        experts = model.experts.active * each / parallel.expert_ranks * model.layers.moe
    return always + experts + states


# Flags by which an engine makes stored weights thinner while it loads them.
_AT_LOAD = ("quantization", "mxfp4_layers", "torchao_config", "quantize")
_FOUR_BITS = re.compile(r"fp4|int4|4bit|4wo|awq|gptq|bitsandbytes|moe|qkv|lm_head", re.IGNORECASE)


def _thinnest(view: ModelView) -> Model:
    """The model with every tensor as thin as this launch may hold it; as stored where nothing says otherwise."""
    model, limit = view.model, None
    stored = [value for value in model.precision.model_dump().values() if value]
    asked = " ".join(str(view.flags[flag]) for flag in _AT_LOAD if view.flags.get(flag))
    if model.checkpoint.packing == "gguf":
        limit = min(stored, key=weight)
    elif asked and (model.checkpoint.packing == "bf16" or view.flags.get("mxfp4_layers")):
        limit = "mxfp4" if _FOUR_BITS.search(asked) else "fp8"
    if limit is None:
        return model
    thin: dict[str, Precision] = {
        name: min(value, limit, key=weight) for name, value in model.precision.model_dump().items() if value
    }
    return model.model_copy(update={"precision": model.precision.model_copy(update=thin)})


def draft_bytes(view: ModelView, requests: float) -> float:
    """One drafting step: the MTP layer and the head, which it shares with the model; or a draft model of its own."""
    model, parallel = weights.held(view), view.parallel
    if model.draft and model.draft.size_gb:
        return model.draft.size_gb * 1e9 / parallel.tp
    head = sum(group.bytes for group in weights.tensors(model, parallel) if group.name == "head")
    layer = 0.0
    for group in weights.draft_layer(model, parallel):
        if group.read == "touched" and model.experts:
            group_share = touched(model.experts.routed, model.experts.active, requests) / model.experts.routed
            layer += group.bytes * group_share
        elif group.read == "always":
            layer += group.bytes
    return head + layer


def _experts(view: ModelView, positions: float) -> float:
    model, parallel = weights.held(view), view.parallel
    if not model.experts:
        return 0.0
    distinct = touched(model.experts.routed, model.experts.active, positions)
    most = busiest_share(distinct, model.experts.routed, parallel.ep)
    within = parallel.expert_ranks / parallel.ep  # ranks that share one expert
    return most * weights.expert_bytes(model, model.experts) / within * model.layers.moe / parallel.pp


def prefill_bytes(view: ModelView, tokens: float) -> float:
    """What one chunk of so many tokens of a prompt reads of the weights, on the busiest rank of one stage."""
    groups = weights.tensors(weights.held(view), view.parallel)
    return sum(group.bytes for group in groups if group.read == "always") + _experts(view, tokens)


def layers(model: Model) -> int:
    """Every part that computes between two norms."""
    kinds = model.layers
    return kinds.softmax + kinds.linear + kinds.mamba + kinds.moe + kinds.dense


def collectives(view: ModelView) -> int:
    """Exchanges per step: one behind every layer that computes, and one each for embedding and logits; where experts
    are dealt over data-parallel ranks, tokens go to them and back in each layer that has some."""
    parallel = view.parallel
    routed = 2 * view.model.layers.moe if parallel.dp > 1 else 0
    return routed if parallel.tp == 1 else layers(view.model) + 2 + routed
