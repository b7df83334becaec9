"""vLLM, TensorRT-LLM and llama.cpp: what each takes of the memory, and what it leaves for requests.

None of these was weighed on GB10 by us: the sums are the engines' own rules, the host's share is assumed.
"""

from __future__ import annotations

from sparkloom.judge.capacity import constants, weights
from sparkloom.judge.capacity.figure import GIB, Figure
from sparkloom.judge.capacity.fit import Fit, Ledger, available, cell, full_requests, graphs, slot, weigh
from sparkloom.judge.capacity.requirements import Requirements
from sparkloom.launch.view import LaunchView


def vllm(view: LaunchView, needs: Requirements) -> Fit:
    """A fraction of the whole machine pays for everything: weights, graphs, activations, cache."""
    ledger = Ledger()
    free = available(view, ledger, _taken(view))
    loaded = weigh(view, ledger)
    share = needs.fraction * view.platform.usable_gib
    ledger.put("static_gib", share, f"{needs.fraction_flag} {needs.fraction:g} x {view.platform.usable_gib:g}")
    spent = graphs(needs, ledger) + _draft(view, needs, ledger)
    if share > free:
        reason = f"vLLM refuses to start: {share:.1f} GiB asked for, about {free:.1f} GiB free"
        return ledger.close(False, reason, share - free)
    return _cache(view, needs, ledger, share - loaded - spent - float(constants.HOST_FLOOR_GIB.value or 0))


def trtllm(view: LaunchView, needs: Requirements) -> Fit:
    """A fraction of what is free after the load becomes the cache."""
    ledger = Ledger()
    free = available(view, ledger, _taken(view))
    loaded = weigh(view, ledger)
    left = free - loaded - graphs(needs, ledger) - _draft(view, needs, ledger)
    rest = ledger.put("static_gib", needs.fraction * left, f"{needs.fraction:g} x {left:.1f} GiB free after load")
    if left * (1 - needs.fraction) < float(constants.HOST_FLOOR_GIB.value or 0) < left:
        ledger.notes.append(
            f"only {left * (1 - needs.fraction):.1f} GiB stay outside the cache; {needs.fraction_flag} lower is safer"
        )
    return _cache(view, needs, ledger, rest)


def llamacpp(view: LaunchView, needs: Requirements) -> Fit:
    """Layers are dealt over the nodes; the cache is allocated whole, for the context that was asked for."""
    ledger = Ledger()
    free = available(view, ledger, constants.BARE_HOST_GIB)
    loaded = weigh(view, ledger)
    rest = free - loaded - float(constants.HOST_FLOOR_GIB.value or 0)
    ledger.notes.append(
        "a GGUF mixes formats per tensor: weights are the file's size in equal parts, not a sum of tensors"
    )
    return _cache(view, needs, ledger, rest)


def _cache(view: LaunchView, needs: Requirements, ledger: Ledger, rest: float) -> Fit:
    """States for every running request and KV for at least one request of full length must fit into `rest`."""
    per_slot, per_token = slot(view, needs, ledger), cell(view, needs, ledger)
    running = needs.running or 1
    drafts = needs.speculation.drafts if needs.speculation else 0
    asked = running * (1 + drafts) * per_slot
    room = max(0.0, rest)
    kept = ledger.put("state_pool_gib", min(asked, room), f"{running} requests x (1 + {drafts}) x bytes per slot")
    kv = ledger.put("kv_pool_gib", room - kept, "what is left - states")
    tokens = int(kv * GIB / per_token) if per_token else 0
    ledger.put("kv_tokens", tokens, "KV pool / KV bytes per token and rank")
    by_state = int(room / ((1 + drafts) * per_slot)) if per_slot else running
    ledger.limit("max_running_requests", min(running, by_state), needs.running_flag)
    full_requests(ledger, tokens, needs)
    ledger.put("headroom_gib", rest - asked - needs.context * per_token / GIB, "left after states and one full request")
    if rest <= 0:
        return ledger.close(False, f"weights leave no room: {-rest:.1f} GiB are missing per rank", -rest)
    if tokens < needs.context:
        missing = needs.context * per_token / GIB - kv
        reason = f"the cache holds {tokens:,} tokens, {needs.context_flag} asks for {needs.context:,}"
        return ledger.close(False, reason, missing)
    return ledger.close(True, f"{tokens:,} KV tokens for {running} request(s)")


def _taken(view: LaunchView) -> Figure:
    return constants.BARE_HOST_GIB if view.parallel.nodes == 1 else constants.TAKEN_BEFORE_LOAD_GIB


def _draft(view: LaunchView, needs: Requirements, ledger: Ledger) -> float:
    if not needs.speculation or not view.model.mtp:
        return 0.0
    return ledger.put("draft_gib", weights.draft_gib(view.model, view.parallel), "MTP layers in their own precision")
