"""Bytes that the busiest rank must move through its memory for one decode step."""

from __future__ import annotations

import math

from sparkloom.launch.memory import constants, state, weights
from sparkloom.launch.memory.requirements import Requirements
from sparkloom.launch.view import LaunchView

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


def step_bytes(view: LaunchView, needs: Requirements, requests: float, positions: int = 1) -> float:
    """One step for `requests` requests, each with `positions` tokens to compute (draft tokens in a verification)."""
    model, parallel = view.model, view.parallel
    always = sum(group.bytes for group in weights.tensors(model, parallel) if group.read == "always")
    live = float(constants.LIVE_TOKENS.value or 0)
    context = requests * state.kv_read_per_request(model, parallel, needs.kv_element, live)
    # Read once, written once per position: verification keeps the state after every draft token.
    slots = requests * state.slot_bytes(model, parallel, needs.state_element) * (1 + positions)
    return always + _experts(view, requests * positions) + context + slots


def draft_bytes(view: LaunchView, requests: float) -> float:
    """One drafting step: the MTP layer and the head, which it shares with the model."""
    model, parallel = view.model, view.parallel
    head = sum(group.bytes for group in weights.tensors(model, parallel) if group.name == "head")
    layer = 0.0
    for group in weights.draft_layer(model, parallel):
        if group.read == "touched" and model.experts:
            group_share = touched(model.experts.routed, model.experts.active, requests) / model.experts.routed
            layer += group.bytes * group_share
        elif group.read == "always":
            layer += group.bytes
    return head + layer


def _experts(view: LaunchView, positions: float) -> float:
    model, parallel = view.model, view.parallel
    if not model.experts:
        return 0.0
    distinct = touched(model.experts.routed, model.experts.active, positions)
    most = busiest_share(distinct, model.experts.routed, parallel.ep)
    within = parallel.tp / parallel.ep  # ranks that share one expert
    return most * weights.expert_bytes(model, model.experts) / within * model.layers.moe / parallel.pp


def collectives(view: LaunchView) -> int:
    """All-reduces per step: one behind every layer that computes, and one each for embedding and logits."""
    if view.parallel.tp == 1:
        return 0
    layers = view.model.layers
    return layers.attention + layers.sliding + layers.linear + layers.mamba + layers.moe + layers.dense + 2
