"""vLLM's memory: a fraction of the whole machine pays for everything.

None of this was weighed on GB10 by us: the sums are the engine's own rules, the host's share is assumed.
"""

from __future__ import annotations

from math import floor

from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.profile import FlagValue
from sparkloom.launch.engines.vllm.dialect import DIALECT
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.constants import GIB, Requirements, drafts, element, state_element
from sparkloom.launch.memory.fit import Fit, Ledger, available, drafting, free_gib, graphs, requests, taken, weigh
from sparkloom.launch.view import ModelView

FRACTION = 0.9  # where a release's catalog names no default
SEQUENCES = 256  # at once, where a profile says nothing
TOLD = "kv_cache_memory_bytes"  # of each rank; gpu_worker.py of 0.17.1 to 0.33.0 then looks at nothing else
CHUNK = 2048  # of a prompt: what two published runs of one model at 0.26.0, told 8192 and told nothing, differ by
BATCHED = 8192  # tokens prefilled at once, likewise: its default for a server on a GPU of this size


def requirements(view: ModelView) -> Requirements:
    tokens = view.mapping("speculative_config").get("num_speculative_tokens")
    eager = view.on("enforce_eager")
    fraction = view.number("gpu_memory_utilization")
    return Requirements(
        fraction=_default(view) if fraction is None else fraction,
        fraction_flag="gpu_memory_utilization",
        fraction_given=fraction is not None,
        context=view.whole("max_model_len") or view.model.context,
        context_flag="max_model_len",
        kv_element=element(view.text("kv_cache_dtype")),
        state_element=state_element(view.text("mamba_ssm_cache_dtype")),
        running=view.whole("max_num_seqs") or SEQUENCES,
        running_flag="max_num_seqs",
        graph_batch=None if eager else min(view.whole("max_num_seqs") or 512, 512),
        eager=eager,
        speculation=drafts(tokens),
        elastic=view.number("max_model_len") == -1,
        ahead=view.whole("max_num_batched_tokens") or BATCHED,
        chunk=view.whole("max_num_batched_tokens") or CHUNK,
        whole_window=view.on("disable_hybrid_kv_cache_manager"),
    )


def _default(view: ModelView) -> float:
    """0.9 for years, 0.92 in newer releases: what this one's own parser says."""
    flag = Catalog.load("vllm", view.release, DIALECT).flag("gpu_memory_utilization")
    return float(flag.default) if flag and isinstance(flag.default, int | float) else FRACTION


def fit(view: ModelView, needs: Requirements) -> Fit:
    """Weights, graphs, activations and cache, all out of one share."""
    ledger = Ledger()
    there = available(view, ledger, taken(view), constants.BEST_SEEN_GIB if view.nodes > 1 else None)
    quantized = view.model.checkpoint.packing != "bf16"
    loaded = weigh(view, ledger, constants.LOAD_OVERHEAD_LEAST_GIB if view.hopeful and quantized else None)
    share = needs.fraction * view.platform.usable_gib
    ledger.put("static_gib", share, f"{needs.fraction_flag} {needs.fraction:g} x {view.platform.usable_gib:g}")
    spent = graphs(needs, ledger, constants.GRAPHS_LEAST_GIB if view.hopeful else None) + drafting(view, needs, ledger)
    if share > there:
        reason = f"vLLM refuses to start: {share:.1f} GiB asked for, about {there:.1f} GiB free"
        return ledger.close(False, reason, share - there)
    if view.dp > 1:
        ledger.notes.append(f"figures are of one copy: {view.dp} of them serve {view.dp} times as many requests")
    floor = max(constants.HOST_FLOOR_GIB.number, activations(view, needs, ledger))
    if told := (view.whole(TOLD) or 0) / GIB:
        ledger.notes.append(f"{TOLD} says what the cache takes, whatever {needs.fraction_flag} leaves")
        if (over := told - (there - loaded - spent - floor)) > 0:
            return ledger.close(False, f"{TOLD} asks for {told:.1f} GiB, {over:.1f} GiB more than is free", over)
    return requests(view, needs, ledger, told or share - loaded - spent - floor, shared=True)


def shared(view: ModelView) -> dict[str, FlagValue]:
    """A share of the whole machine is what its flag says, less what lies beside it: CUDA's context, its processes."""
    share = free_gib(view, taken(view)).least / view.platform.usable_gib
    return {requirements(view).fraction_flag: max(0.01, floor(share * 1000) / 1000)}


def activations(view: ModelView, needs: Requirements, ledger: Ledger) -> float:
    """What its profile run keeps at the peak: a batch of prefill in bf16, between attention and the experts."""
    model, experts = view.model, view.model.experts
    width = 4.0 * model.hidden + 2.0 * (model.dense_inter or 0) / view.tp
    if experts:
        halves = 2.0 if experts.gated else 1.0  # gate and up projection side by side
        each = halves * experts.inter / view.tp + (experts.latent or model.hidden)
        width = max(width, 4.0 * model.hidden + experts.active * each)
    size = needs.ahead * width * 2 / GIB
    formula = f"{needs.ahead:,} tokens prefilled at once x {width:,.0f} values in bf16"
    return ledger.put("activations_gib", size, formula)
