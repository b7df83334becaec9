"""What a launch of SGLang asks of memory, its own defaults where a profile says nothing."""

from __future__ import annotations

from sparkloom.launch.memory.requirements import Requirements, Speculation, element, state_element
from sparkloom.launch.view import ModelView

CHUNK = 8192  # chunked_prefill_size, where nothing is given
SPECULATIVE_REQUESTS = 48  # running at once, where speculation is on and no number is given


def requirements(view: ModelView) -> Requirements:
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
