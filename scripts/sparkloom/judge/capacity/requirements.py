"""What a launch asks of memory, in one language for four engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkloom.launch.view import LaunchView, finite

# An engine's default where a profile says nothing.
SGLANG_SPECULATIVE_REQUESTS = 48
VLLM_SEQUENCES = 256


@dataclass(frozen=True, slots=True)
class Speculation:
    steps: int
    drafts: int  # positions that one verification step computes
    key: str  # as profiles name a measured accept length

    @property
    def most(self) -> int:
        """No verification step yields more tokens than it checks, nor more than the drafting steps and one."""
        return min(self.steps + 1, self.drafts)


@dataclass(frozen=True, slots=True)
class Requirements:
    fraction: float
    fraction_flag: str
    fraction_given: bool
    context: int
    context_flag: str
    kv_element: float
    state_element: float
    running: int | None  # the profile's own ceiling
    running_flag: str
    slots: int | None = None
    slots_per_request: int = 1
    radix: bool = True
    graph_batch: int | None = None  # None: graphs are off
    speculation: Speculation | None = None


def read(view: LaunchView) -> Requirements:
    readers: dict[str, Callable[[LaunchView], Requirements]] = {
        "sglang": _sglang,
        "vllm": _vllm,
        "trtllm": _trtllm,
        "llamacpp": _llamacpp,
    }
    return readers[view.engine](view)


def _sglang(view: LaunchView) -> Requirements:
    speculation = _sglang_speculation(view)
    radix = view.flags.get("disable_radix_cache") is not True
    running = view.whole("max_running_requests")
    if speculation and running is None:
        running = SGLANG_SPECULATIVE_REQUESTS
    fraction = view.number("mem_fraction_static")
    batch = view.whole("cuda_graph_max_bs") or (8 if view.flags.get("disable_piecewise_cuda_graph") else 256)
    return Requirements(
        fraction=_sglang_fraction(view, batch, speculation) if fraction is None else fraction,
        fraction_flag="mem_fraction_static",
        fraction_given=fraction is not None,
        context=view.whole("context_length") or view.model.context,
        context_flag="context_length",
        kv_element=_element(view.text("kv_cache_dtype")),
        state_element=_state_element(view.text("mamba_ssm_dtype") or view.env.get("SGLANG_MAMBA_SSM_DTYPE", "")),
        running=running,
        running_flag="max_running_requests",
        slots=view.whole("max_mamba_cache_size"),
        slots_per_request=_sglang_slots(view, radix, speculation),
        radix=radix,
        graph_batch=None if view.flags.get("disable_cuda_graph") is True else batch,
        speculation=speculation,
    )


def _sglang_fraction(view: LaunchView, batch: int, speculation: Speculation | None) -> float:
    """The engine's own default: capacity less what it reserves for prefill, graphs and drafting."""
    capacity = view.platform.usable_gib * 1024
    chunk = view.whole("chunked_prefill_size") or 8192
    reserved = 512 + max(chunk, 2048) * 1.5 + batch * 2 + view.parallel.nodes / 8 * 1024
    reserved = max(reserved, 10 * 1024) + (4 * 1024 if speculation else 0)
    return round((capacity - reserved) / capacity, 3)


def _sglang_slots(view: LaunchView, radix: bool, speculation: Speculation | None) -> int:
    """State slots per request: its own and two that the prefix cache keeps; two more to track a running request,
    which the strategy extra_buffer does, and speculation beside a prefix cache needs that strategy."""
    if not radix:
        return 1
    extra = view.text("mamba_scheduler_strategy").startswith("extra_buffer") or speculation is not None
    if not extra:
        return 3
    return 4 if view.flags.get("disable_overlap_schedule") is True else 5


def _sglang_speculation(view: LaunchView) -> Speculation | None:
    if not view.text("speculative_algorithm"):
        return None
    steps = view.whole("speculative_num_steps") or 3
    given = view.whole("speculative_num_draft_tokens") or steps + 1
    topk = view.whole("speculative_eagle_topk") or 1
    # With one candidate per step the engine itself makes draft tokens = steps + 1.
    return Speculation(steps, steps + 1 if topk == 1 else given, f"{steps}/{given}")


def _vllm(view: LaunchView) -> Requirements:
    tokens = view.mapping("speculative_config").get("num_speculative_tokens")
    eager = view.flags.get("enforce_eager") is True
    fraction = view.number("gpu_memory_utilization")
    return Requirements(
        fraction=0.9 if fraction is None else fraction,
        fraction_flag="gpu_memory_utilization",
        fraction_given=fraction is not None,
        context=view.whole("max_model_len") or view.model.context,
        context_flag="max_model_len",
        kv_element=_element(view.text("kv_cache_dtype")),
        state_element=_state_element(view.text("mamba_ssm_cache_dtype")),
        running=view.whole("max_num_seqs") or VLLM_SEQUENCES,
        running_flag="max_num_seqs",
        graph_batch=None if eager else min(view.whole("max_num_seqs") or 512, 512),
        speculation=_drafts(tokens),
    )


def _trtllm(view: LaunchView) -> Requirements:
    options = view.mapping("extra_llm_api_options")
    cache = options.get("kv_cache_config") if isinstance(options.get("kv_cache_config"), dict) else {}
    assert isinstance(cache, dict)
    given = finite(cache.get("free_gpu_memory_fraction"))
    speculative = options.get("speculative_config")
    tokens = speculative.get("num_nextn_predict_layers") if isinstance(speculative, dict) else None
    return Requirements(
        fraction=0.9 if given is None else given,
        fraction_flag="extra_llm_api_options.kv_cache_config.free_gpu_memory_fraction",
        fraction_given=given is not None,
        context=view.whole("max_seq_len") or view.model.context,
        context_flag="max_seq_len",
        kv_element=_element(str(cache.get("dtype", ""))),
        state_element=_state_element(str(cache.get("mamba_ssm_cache_dtype", options.get("mamba_ssm_cache_dtype", "")))),
        running=view.whole("max_batch_size") or 8,
        running_flag="max_batch_size",
        graph_batch=8,
        speculation=_drafts(tokens),
    )


def _llamacpp(view: LaunchView) -> Requirements:
    return Requirements(
        fraction=1.0,
        fraction_flag="",
        fraction_given=False,
        context=view.whole("ctx_size") or view.model.context,
        context_flag="ctx_size",
        kv_element=_element(view.text("cache_type_k")),
        state_element=4.0,
        running=view.whole("parallel") or 1,
        running_flag="parallel",
        graph_batch=None,
    )


def _drafts(tokens: object) -> Speculation | None:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        return None
    return Speculation(tokens, tokens + 1, f"{tokens}/{tokens + 1}")


def _element(dtype: str) -> float:
    """Bytes per stored value; engines keep the model's bf16 unless told otherwise."""
    if dtype.startswith("fp8") or dtype.startswith("q8"):
        return 1.0
    return 0.5625 if dtype.startswith(("fp4", "nvfp4", "q4")) else 2.0


def _state_element(dtype: str) -> float:
    return 2.0 if dtype in {"float16", "bfloat16"} else 4.0
