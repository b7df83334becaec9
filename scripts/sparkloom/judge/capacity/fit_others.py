"""vLLM, TensorRT-LLM and llama.cpp: what each takes of the memory, and what it leaves for requests.

None of these was weighed on GB10 by us: the sums are the engines' own rules, the host's share is assumed.
"""

from __future__ import annotations

from sparkloom.judge.capacity import constants, weights
from sparkloom.judge.capacity.figure import GIB, Figure
from sparkloom.judge.capacity.fit import Fit, Ledger, available, cell, full_requests, graphs, slot, weigh
from sparkloom.judge.capacity.requirements import Demand
from sparkloom.judge.capacity.view import Subject


def vllm(subject: Subject, demand: Demand) -> Fit:
    """A fraction of the whole machine pays for everything: weights, graphs, activations, cache."""
    ledger = Ledger()
    free = available(subject, ledger, _taken(subject))
    loaded = weigh(subject, ledger)
    share = demand.fraction * subject.platform.usable_gib
    ledger.put("static_gib", share, f"{demand.fraction_flag} {demand.fraction:g} x {subject.platform.usable_gib:g}")
    spent = graphs(demand, ledger) + _draft(subject, demand, ledger)
    if share > free:
        reason = f"vLLM refuses to start: {share:.1f} GiB asked for, about {free:.1f} GiB free"
        return ledger.close(False, reason, share - free)
    return _cache(subject, demand, ledger, share - loaded - spent - float(constants.HOST_FLOOR_GIB.value or 0))


def trtllm(subject: Subject, demand: Demand) -> Fit:
    """A fraction of what is free after the load becomes the cache."""
    ledger = Ledger()
    free = available(subject, ledger, _taken(subject))
    loaded = weigh(subject, ledger)
    left = free - loaded - graphs(demand, ledger) - _draft(subject, demand, ledger)
    rest = ledger.put("static_gib", demand.fraction * left, f"{demand.fraction:g} x {left:.1f} GiB free after load")
    if left * (1 - demand.fraction) < float(constants.HOST_FLOOR_GIB.value or 0) < left:
        ledger.notes.append(
            f"only {left * (1 - demand.fraction):.1f} GiB stay outside the cache; {demand.fraction_flag} lower is safer"
        )
    return _cache(subject, demand, ledger, rest)


def llamacpp(subject: Subject, demand: Demand) -> Fit:
    """Layers are dealt over the nodes; the cache is allocated whole, for the context that was asked for."""
    ledger = Ledger()
    free = available(subject, ledger, constants.BARE_HOST_GIB)
    loaded = weigh(subject, ledger)
    rest = free - loaded - float(constants.HOST_FLOOR_GIB.value or 0)
    ledger.notes.append(
        "a GGUF mixes formats per tensor: weights are the file's size in equal parts, not a sum of tensors"
    )
    return _cache(subject, demand, ledger, rest)


def _cache(subject: Subject, demand: Demand, ledger: Ledger, rest: float) -> Fit:
    """States for every running request and KV for at least one request of full length must fit into `rest`."""
    per_slot, per_token = slot(subject, demand, ledger), cell(subject, demand, ledger)
    running = demand.running or 1
    drafts = demand.speculation.drafts if demand.speculation else 0
    asked = running * (1 + drafts) * per_slot
    room = max(0.0, rest)
    kept = ledger.put("state_pool_gib", min(asked, room), f"{running} requests x (1 + {drafts}) x bytes per slot")
    kv = ledger.put("kv_pool_gib", room - kept, "what is left - states")
    tokens = int(kv * GIB / per_token) if per_token else 0
    ledger.put("kv_tokens", tokens, "KV pool / KV bytes per token and rank")
    by_state = int(room / ((1 + drafts) * per_slot)) if per_slot else running
    ledger.limit("max_running_requests", min(running, by_state), demand.running_flag)
    full_requests(ledger, tokens, demand)
    ledger.put(
        "headroom_gib", rest - asked - demand.context * per_token / GIB, "left after states and one full request"
    )
    if rest <= 0:
        return ledger.close(False, f"weights leave no room: {-rest:.1f} GiB are missing per rank", -rest)
    if tokens < demand.context:
        missing = demand.context * per_token / GIB - kv
        reason = f"the cache holds {tokens:,} tokens, {demand.context_flag} asks for {demand.context:,}"
        return ledger.close(False, reason, missing)
    return ledger.close(True, f"{tokens:,} KV tokens for {running} request(s)")


def _taken(subject: Subject) -> Figure:
    return constants.BARE_HOST_GIB if subject.parallel.nodes == 1 else constants.TAKEN_BEFORE_LOAD_GIB


def _draft(subject: Subject, demand: Demand, ledger: Ledger) -> float:
    if not demand.speculation or not subject.model.mtp:
        return 0.0
    return ledger.put(
        "draft_gib", weights.draft_gib(subject.model, subject.parallel), "MTP layers in their own precision"
    )
