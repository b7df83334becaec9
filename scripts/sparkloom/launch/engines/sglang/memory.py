"""SGLang's memory: `mem_fraction_static` of what was free before the load pays for weights, state slots and KV pool.

So the flag is no fraction of the machine, and raising it is what cures "Not enough memory"; the rest, 1 - fraction,
must hold graphs, activations and a draft model. Read from SGLang 0.5.12 and 0.5.13, checked against logged pools.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkloom.inputs.profile import FlagValue
from sparkloom.launch.memory import constants, state, weights
from sparkloom.launch.memory.constants import GIB, Requirements, Speculation, element, state_element
from sparkloom.launch.memory.fit import Fit, Ledger, available, cell, drafting, full_requests, graphs, slot, weigh
from sparkloom.launch.view import ModelView

STATE_TO_KV = 0.9  # mamba_full_memory_ratio: without a given number of slots, state and KV share as 0.9 to 1
ENGINE_CEILING = (2048, 4096)  # requests, where nothing else limits them
CHUNK = 8192  # chunked_prefill_size, where nothing is given
SPECULATIVE_REQUESTS = 48  # running at once, where speculation is on and no number is given


@dataclass(frozen=True, slots=True)
class Pools:
    slots: int
    running: int | None  # what the slots allow
    state_gib: float
    speculative_gib: float
    padding_gib: float = 0.0  # one slot more, which the sum over the budget leaves out

    @property
    def gib(self) -> float:
        """What the budget pays."""
        return self.state_gib + self.speculative_gib - self.padding_gib


def requirements(view: ModelView) -> Requirements:
    """What the launch asks of memory, the engine's own defaults where a profile says nothing."""
    speculation = _speculation(view)
    radix = view.flags.get("disable_radix_cache") is not True
    running = view.whole("max_running_requests")
    if speculation and running is None:
        running = SPECULATIVE_REQUESTS
    fraction = view.number("mem_fraction_static")
    batch = view.whole("cuda_graph_max_bs") or (8 if view.flags.get("disable_piecewise_cuda_graph") else 256)
    return Requirements(
        fraction=_fraction(view, batch, speculation) if fraction is None else fraction,
        fraction_flag="mem_fraction_static",
        fraction_given=fraction is not None,
        context=view.whole("context_length") or view.model.context,
        context_flag="context_length",
        kv_element=element(view.text("kv_cache_dtype")),
        state_element=state_element(view.text("mamba_ssm_dtype") or view.env.get("SGLANG_MAMBA_SSM_DTYPE", "")),
        running=running,
        running_flag="max_running_requests",
        slots=view.whole("max_mamba_cache_size"),
        slots_flag="max_mamba_cache_size",
        slots_per_request=_slots(view, radix, speculation),
        radix=radix,
        graph_batch=None if view.eager else batch,
        eager=view.eager,
        short_pool=True,
        speculation=speculation,
        tokens=view.whole("max_total_tokens"),
        chunk=view.whole("chunked_prefill_size") or CHUNK,
    )


def _fraction(view: ModelView, batch: int, speculation: Speculation | None) -> float:
    """The engine's own default: capacity less what it reserves for prefill, graphs and drafting."""
    capacity = view.platform.usable_gib * 1024
    chunk = view.whole("chunked_prefill_size") or CHUNK
    reserved = 512 + max(chunk, 2048) * 1.5 + batch * 2 + view.parallel.nodes / 8 * 1024
    reserved = max(reserved, 10 * 1024) + (4 * 1024 if speculation else 0)
    return round((capacity - reserved) / capacity, 3)


def _slots(view: ModelView, radix: bool, speculation: Speculation | None) -> int:
    """State slots per request: its own and two that the prefix cache keeps; two more to track a running request,
    which the strategy extra_buffer does, and speculation beside a prefix cache needs that strategy."""
    if not radix:
        return 1
    extra = view.text("mamba_scheduler_strategy").startswith("extra_buffer") or speculation is not None
    if not extra:
        return 3
    return 4 if view.flags.get("disable_overlap_schedule") is True else 5


def _speculation(view: ModelView) -> Speculation | None:
    if not view.text("speculative_algorithm"):
        return None
    steps = view.whole("speculative_num_steps") or 3
    given = view.whole("speculative_num_draft_tokens") or steps + 1
    topk = view.whole("speculative_eagle_topk") or 1
    # With one candidate per step the engine itself makes draft tokens = steps + 1.
    return Speculation(steps, steps + 1 if topk == 1 else given, f"{steps}/{given}")


def fit(view: ModelView, needs: Requirements) -> Fit:
    ledger = Ledger()
    free = available(view, ledger, constants.TAKEN_BEFORE_LOAD_GIB)
    loaded = weigh(view, ledger)
    beside = "left for the page cache at the end of the load: free - weights"
    ledger.put("page_cache_gib", max(0.0, free - loaded), beside)
    budget = needs.fraction * free - loaded
    where = needs.fraction_flag if needs.fraction_given else f"{needs.fraction_flag} (the engine's default)"
    ledger.put("static_gib", budget, f"{where} {needs.fraction:g} x {free:.1f} free before load - {loaded:.2f} weights")
    per_slot, per_token = slot(view, needs, ledger), cell(view, needs, ledger)
    pools = _pools(needs, budget, per_slot, ledger)
    paid = "static budget - state slots without the padding one - speculative states"
    left = max(0.0, budget - pools.gib)
    kv, tokens = left, int(left * GIB / per_token) if per_token else 0
    if needs.tokens is not None and needs.tokens < tokens:
        kv, tokens = needs.tokens * per_token / GIB, needs.tokens
        ledger.put("kv_pool_gib", kv, f"max_total_tokens x KV bytes per token and rank; {left:.1f} could be paid for")
        ledger.put("kv_tokens", tokens, "max_total_tokens")
    else:
        ledger.put("kv_pool_gib", kv, paid)
        ledger.put("kv_tokens", tokens, "KV pool / KV bytes per token and rank")
    _floor(view, needs, loaded + pools.gib, free, ledger)
    headroom = _headroom(view, needs, free, tokens, pools, left - kv, ledger)
    _ceiling(needs, tokens, pools, ledger)
    full_requests(ledger, tokens, needs)
    return _verdict(needs, budget - pools.gib, tokens, pools, headroom, ledger)


def shared(view: ModelView) -> dict[str, FlagValue]:
    """All of the share: the highest fraction that leaves what graphs, drafts and the host need.

    That fraction is of what the engine finds free, and others may not have taken theirs by then: so its pools are told
    in numbers, too.
    """
    for percent in range(95, 0, -1):
        told: dict[str, FlagValue] = {requirements(view).fraction_flag: percent / 100}
        tried = replace(view, flags={**view.flags, **told})
        needs = requirements(tried)
        found = fit(tried, needs)
        if found.fits:
            numbers = {"max_total_tokens": "kv_tokens", **({} if needs.slots else {needs.slots_flag: "state_slots"})}
            known = {flag: found.memory[name].value for flag, name in numbers.items() if name in found.memory}
            return told | {flag: int(value) for flag, value in known.items() if value}
    return {}


def _pools(needs: Requirements, budget: float, per_slot: float, ledger: Ledger) -> Pools:
    """State slots: given, or as many as running requests (no prefix cache), or from the ratio of state to KV."""
    if not per_slot:
        return Pools(0, None, 0.0, 0.0)
    drafts = needs.speculation.drafts if needs.speculation else 0
    each = needs.slots_per_request
    if needs.slots is not None:
        slots, how = needs.slots, "max_mamba_cache_size"
    elif not needs.radix and needs.running is not None:
        slots, how = needs.running, "max_running_requests: one slot each without a prefix cache"
    else:
        share = max(0.0, budget) * STATE_TO_KV / (1 + STATE_TO_KV)
        slots = int(share / (per_slot * (1 + drafts / each)))
        how = f"static budget x {STATE_TO_KV}/{1 + STATE_TO_KV} / slot"
        how += f" x (1 + {drafts}/{each})" if drafts else ""
    running = slots // each
    live = min(running, needs.running or running)
    state_gib = ledger.put("state_pool_gib", (slots + 1) * per_slot, "(slots + 1 for padding) x bytes per slot")
    ledger.put("state_slots", slots, how)
    ledger.put("state_slots_per_request", each, "1 without prefix cache, 3 with it, 5 with extra_buffer (speculation)")
    extra = live * per_slot * drafts
    if drafts:
        ledger.put("speculative_pool_gib", extra, f"{live} running x {drafts} draft positions x bytes per slot")
    return Pools(slots, running, state_gib, extra, per_slot)


def _floor(view: ModelView, needs: Requirements, needed: float, free: float, ledger: Ledger) -> None:
    """The lowest fraction that starts: weights and given pools must fit under it with something left for KV."""
    if needs.slots is None and view.model.layers.mamba + view.model.layers.linear and needs.radix:
        needed = ledger.memory["weights_gib_per_rank"].number
    lowest = round(needed / free + 0.0005, 3)
    ledger.limit(f"{needs.fraction_flag}_floor", lowest, "(weights + state pools) / free before load")


def _headroom(
    view: ModelView, needs: Requirements, free: float, tokens: int, pools: Pools, unused: float, ledger: Ledger
) -> float:
    floor = constants.HOST_FLOOR_GIB
    ledger.put("host_reserve_gib", floor.number, f"of the headroom: {floor.formula}", floor.origin)
    reserve = ledger.put("reserve_gib", (1 - needs.fraction) * free, "(1 - fraction) x free before load")
    spent = graphs(needs, ledger) + pools.padding_gib
    if needs.speculation and view.model.mtp:
        model, parallel = view.model, view.parallel
        layers = model.mtp.layers if model.mtp else 0
        cache = tokens * layers * state.kv_bytes_per_layer(model, parallel.tp, needs.kv_element) / GIB
        draft = weights.draft_gib(model, parallel) + cache
        spent += ledger.put("draft_gib", draft, "MTP layers in their own precision + their KV cache for every token")
    elif needs.speculation and view.model.draft and view.model.draft.size_gb:
        spent += drafting(view, needs, ledger)
    elif needs.speculation:
        ledger.notes.append("the draft model's size is no fact of this profile: its memory is not counted")
    how = "reserve - graphs - draft" + (" + what max_total_tokens leaves of the KV pool" if unused else "")
    return ledger.put("headroom_gib", reserve - spent + unused, f"{how}: activations, JIT, host")


def _ceiling(needs: Requirements, tokens: int, pools: Pools, ledger: Ledger) -> None:
    low, high = ENGINE_CEILING
    engine = min(max(int(tokens / needs.context * 512), low), high)
    asked = min(needs.running, engine) if needs.running else min(engine, tokens // 2)
    if pools.running is None:
        ledger.limit("max_running_requests", asked, "max_running_requests, else the engine's own ceiling")
        return
    formula = f"{pools.slots} state slots // {needs.slots_per_request} per request"
    ledger.limit("state_requests", pools.running, formula)
    if needs.running:
        formula = f"the smaller of that ({pools.running}) and max_running_requests {needs.running}"
    ledger.limit("max_running_requests", min(asked, pools.running), formula)


def _verdict(needs: Requirements, kv: float, tokens: int, pools: Pools, headroom: float, ledger: Ledger) -> Fit:
    free, loaded = (ledger.memory[name].number for name in ("free_before_load_gib", "weights_gib_per_rank"))
    floor = constants.HOST_FLOOR_GIB.number
    if loaded > free:
        reason = f"weights need {loaded:.1f} GiB per rank, {free:.1f} GiB are free"
        return ledger.close(False, reason, loaded - free)
    if tokens <= 0:
        what = f"{loaded:.1f} GiB weights + {pools.gib:.2f} GiB state pools"
        reason = f"no KV pool: {needs.fraction_flag} {needs.fraction:g} x {free:.1f} GiB is less than {what}"
        return ledger.close(False, reason, -kv)
    if pools.running == 0:
        return ledger.close(False, f"{pools.slots} state slots serve no request ({needs.slots_per_request} each)")
    if headroom < floor:
        reason = f"only {headroom:.1f} GiB stay free for activations and the host, {floor:g} are needed"
        return ledger.close(False, reason, floor - headroom)
    return ledger.close(True, f"{tokens:,} KV tokens, {headroom:.1f} GiB stay free")
