"""TensorRT-LLM's memory: a fraction of what is free after the load becomes the cache.

None of this was weighed on GB10 by us: the sums are the engine's own rules, the host's share is assumed.
"""

from __future__ import annotations

from sparkloom.inputs.profile import FlagValue
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.constants import Requirements, drafts, element, state_element
from sparkloom.launch.memory.fit import Fit, Ledger, available, drafting, graphs, requests, taken, weigh
from sparkloom.launch.view import ModelView, finite

FILED = "extra_llm_api_options.kv_cache_config.free_gpu_memory_fraction"
FRACTIONS = ("kv_cache_free_gpu_memory_fraction", "free_gpu_memory_fraction")  # one flag, by its two names


def requirements(view: ModelView) -> Requirements:
    options = view.mapping("extra_llm_api_options")
    cache = options.get("kv_cache_config") if isinstance(options.get("kv_cache_config"), dict) else {}
    assert isinstance(cache, dict)
    inside = finite(cache.get("free_gpu_memory_fraction"))  # the file goes before a flag
    told = next((flag for flag in FRACTIONS if inside is None and view.number(flag) is not None), "")
    given = view.number(told) if told else inside
    speculative = options.get("speculative_config")
    tokens = speculative.get("num_nextn_predict_layers") if isinstance(speculative, dict) else None
    return Requirements(
        fraction=0.9 if given is None else given,
        fraction_flag=told or FILED,
        fraction_given=given is not None,
        context=view.whole("max_seq_len") or view.model.context,
        context_flag="max_seq_len",
        kv_element=element(str(cache.get("dtype", ""))),
        state_element=state_element(str(cache.get("mamba_ssm_cache_dtype", options.get("mamba_ssm_cache_dtype", "")))),
        running=view.whole("max_batch_size") or 8,
        running_flag="max_batch_size",
        graph_batch=8,
        speculation=drafts(tokens),
        ahead=view.whole("max_num_tokens") or 8192,
        chunk=view.whole("max_num_tokens") or 8192,
    )


def fit(view: ModelView, needs: Requirements) -> Fit:
    ledger = Ledger()
    free = available(view, ledger, taken(view))
    loaded = weigh(view, ledger)
    left = free - loaded - graphs(needs, ledger) - drafting(view, needs, ledger)
    rest = ledger.put("static_gib", needs.fraction * left, f"{needs.fraction:g} x {left:.1f} GiB free after load")
    outside = left * (1 - needs.fraction)
    if outside < constants.HOST_FLOOR_GIB.number < left:
        ledger.notes.append(f"only {outside:.1f} GiB stay outside the cache; {needs.fraction_flag} lower is safer")
    return requests(view, needs, ledger, rest)


def shared(view: ModelView) -> dict[str, FlagValue]:
    """Its fraction is of what is free after the load, whoever took the rest: so the cache is told in tokens."""
    tokens = int(fit(view, requirements(view)).memory["kv_tokens"].value or 0)
    options = view.mapping("extra_llm_api_options")
    cache = options.get("kv_cache_config")
    told = {**(cache if isinstance(cache, dict) else {}), "max_tokens": tokens}
    return {"extra_llm_api_options": {**options, "kv_cache_config": told}} if tokens > 0 else {}
