"""What an engine refuses after its parser was content: the checks that stop people in the first second.

Worded as the release words it (tests look the words up in the release's own source), spelled per release.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from standin.config import Config, Speculation
from standin.facts import Facts
from standin.releases import since, until

FULL_TRUE, FULL_FALSE = ("true", "1", "yes", "y"), ("false", "0", "no", "n")
EAGLES = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
RADIX_WITH_SPECULATION = "sglang#27998"  # an image may carry it before the release did
OVERWRITE = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"


@dataclass(frozen=True)
class Launch:
    config: Config
    facts: Facts
    environ: Mapping[str, str]

    @property
    def values(self) -> dict[str, object]:
        return self.config.values

    def before(self, last: str) -> bool:
        return until(self.config.release, last)

    def after(self, first: str) -> bool:
        return since(self.config.release, first)

    def is_on(self, name: str) -> bool:
        return self.environ.get(name, "").lower() in FULL_TRUE


class Refusal(Exception):
    """The engine's exception, as the last line of its traceback."""


Check = Callable[[Launch], str | None]


def speculation_topk(launch: Launch) -> str | None:
    spec = launch.config.speculation
    if spec and spec.algorithm in EAGLES and spec.steps is not None and spec.topk is None:
        return "TypeError: '>' not supported between instances of 'NoneType' and 'int'"
    return None


def speculation_steps(launch: Launch) -> str | None:
    spec = launch.config.speculation
    if spec and spec.algorithm in EAGLES and spec.steps is None and (spec.topk or spec.draft_tokens):
        return "AssertionError"
    return None


def radix_with_speculation(launch: Launch) -> str | None:
    config = launch.config
    strategy = launch.values.get("mamba_scheduler_strategy") or "auto"
    if not (launch.facts.hybrid and config.speculation and launch.before("0.5.13.post1")):
        return None
    if launch.values.get("disable_radix_cache") or strategy == "extra_buffer":
        return None
    if RADIX_WITH_SPECULATION in config.carries:
        return None
    return (
        f"ValueError: Speculative decoding for {launch.facts.architecture} is not compatible with radix cache "
        "when using --mamba-scheduler-strategy no_buffer.To use radix cache with speculative decoding, please use "
        "--mamba-scheduler-strategy extra_buffer and set SGLANG_ENABLE_SPEC_V2=1."
    )


def extra_buffer(launch: Launch) -> str | None:
    if not launch.facts.hybrid or launch.values.get("mamba_scheduler_strategy") != "extra_buffer":
        return None
    if (launch.facts.architecture or "").startswith("NemotronH") and launch.before("0.5.12.post1"):
        return f"AssertionError: mamba extra_buffer is not supported for {launch.facts.architecture} model"
    if launch.values.get("disable_radix_cache") and launch.before("0.5.13.post1"):
        dot = "." if launch.after("0.5.13") else ""
        return (
            f"ValueError: mamba extra_buffer is not compatible with --disable-radix-cache{dot} "
            "Overlap scheduling is already supported with no_buffer + disable_radix_cache. "
            "Please use --mamba-scheduler-strategy no_buffer instead."
        )
    return None


def nemotron_attention(launch: Launch) -> str | None:
    if launch.facts.architecture != "NemotronHForCausalLM" or not launch.before("0.5.18"):
        return None
    if launch.config.attention != "triton":
        return None
    return (
        "AssertionError: NemotronHForCausalLM does not support triton attention backend,"
        "as the first layer might not be an attention layer"
    )


def gemma_attention(launch: Launch) -> str | None:
    used = launch.config.attention
    if "Gemma4" not in (launch.facts.architecture or "") or not launch.after("0.5.13"):
        return None
    if used in (None, "trtllm_mha", "triton", "intel_xpu"):
        return None
    return (
        "AssertionError: Gemma4 only supports trtllm_mha, triton, or intel_xpu attention backend, "
        f"got prefill={used}, decode={used}"
    )


def moe_runner(launch: Launch) -> str | None:
    config = launch.config
    allowed = {
        "flashinfer_cutlass": ("modelopt_fp4", "modelopt_fp8", "modelopt_mixed", None),
        "flashinfer_cutedsl": ("modelopt_fp4", "modelopt_mixed", "nvfp4_online"),
    }.get(config.moe or "")
    if allowed is None:
        return None
    if config.quantization not in (*allowed, "modelopt"):
        supports = (
            "FlashInfer Cutlass MOE supports only: 'modelopt_fp4', 'modelopt_fp8', 'modelopt_mixed', "
            "or bfloat16 (None)."
            if config.moe == "flashinfer_cutlass"
            else "FlashInfer CuteDSL MOE currently supports only: 'modelopt_fp4'."
        )
        return f"AssertionError: Invalid quantization '{config.quantization}'. \n{supports}"
    if config.ep not in (1, config.tp):
        return "AssertionError: The expert parallel size must be 1 or the same as the tensor parallel size"
    return None


def ranks(launch: Launch) -> str | None:
    config = launch.config
    if (config.tp * config.pp) % config.nnodes:
        return "AssertionError: tp_size must be divisible by number of nodes"
    if config.pp > 1 and config.speculation:
        return "AssertionError: Pipeline parallelism is not compatible with overlap schedule, speculative decoding"
    if config.dp > 1 and config.nnodes != 1 and not launch.values.get("enable_dp_attention"):
        return "AssertionError: multi-node data parallel is not supported unless dp attention!"
    return None


def context(launch: Launch) -> str | None:
    asked = launch.config.context
    try:
        override = json.loads(str(launch.values.get("json_model_override_args") or "{}"))
    except ValueError as error:
        return f"json.decoder.JSONDecodeError: {error}"
    native = override.get("max_position_embeddings") or launch.facts.context
    if asked and native and asked > native and not launch.is_on(OVERWRITE):
        return (
            f"ValueError: User-specified context_length ({asked}) is greater than the derived context_length "
            f"({native}). This may lead to incorrect model outputs or CUDA errors. Note that the derived "
            "context_length may differ from max_position_embeddings in the model's config. To allow overriding this "
            f"maximum, set the env var {OVERWRITE}=1"
        )
    return None


def vllm_context(launch: Launch) -> str | None:
    asked, native = launch.config.context, launch.facts.context
    if asked and native and asked > native and launch.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        return (
            f"ValueError: User-specified max_model_len ({asked}) is greater than the derived max_model_len "
            f"(max_position_embeddings={native} or model_max_length=None in model's config.json). To allow overriding "
            "this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"
        )
    return None


def trtllm_context(launch: Launch) -> str | None:
    asked, native = launch.config.context, launch.facts.context
    if asked and native and asked > native and launch.environ.get("TLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        return f"ValueError: max_seq_len ({asked}) is larger than max_position_embeddings ({native})"
    return None


CHECKS: dict[str, tuple[Check, ...]] = {
    "sglang": (
        context,
        extra_buffer,
        radix_with_speculation,
        nemotron_attention,
        gemma_attention,
        moe_runner,
        speculation_steps,
        speculation_topk,
        ranks,
    ),
    "vllm": (vllm_context,),
    "trtllm": (trtllm_context,),
    "llamacpp": (),
}


def settle(config: Config, facts: Facts, environ: Mapping[str, str] = os.environ) -> tuple[Config, list[str]]:
    """The launch as the engine corrects it, with its warnings; Refusal when it would not start."""
    launch = Launch(config, facts, environ)
    for check in CHECKS[config.engine]:
        text = check(launch)
        if text:
            raise Refusal(text)
    warnings = list(_warned_words(launch))
    spec = config.speculation
    if config.engine == "sglang" and spec and spec.algorithm in EAGLES:
        if spec.topk == 1 and spec.steps and spec.draft_tokens != spec.steps + 1:
            warnings.append(
                "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1"
            )
            fixed = Speculation(spec.algorithm, spec.steps, spec.steps + 1, 1)
            config = replace(config, speculation=fixed)
        if not config.values.get("max_running_requests"):
            warnings.append(
                "Max running requests is reset to 48 for speculative decoding. "
                "You can override this by explicitly setting --max-running-requests."
            )
    return config, warnings


def _warned_words(launch: Launch) -> Iterator[str]:
    """SGLang reads only eight words as a boolean and goes on with its default for any other."""
    for name, default in (("SGLANG_ENABLE_JIT_DEEPGEMM", True), (OVERWRITE, False)):
        word = launch.environ.get(name)
        if launch.config.engine == "sglang" and word and word.lower() not in FULL_TRUE + FULL_FALSE:
            yield (
                f'UserWarning: Invalid value for {name}: "{word}" is not a valid boolean value, '
                f'using default "{default}"'
            )
