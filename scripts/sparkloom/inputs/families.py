"""What a model's name alone tells, for rules: its architecture and the few facts that decide whether a kernel works.

A profile says more and is preferred where there is one; this table serves measured rows of models that ship
without a profile, and the facts that no profile has a place for (which layers of a checkpoint hold NVFP4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkloom.inputs.profile import Model

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a checkpoint that rules ask for. None = not known, and then no rule may conclude from it."""

    multimodal: bool | None = None
    context: int | None = None
    q_heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    experts: int | None = None
    expert_inter: int | None = None
    gated: bool | None = None  # experts have a gate beside the up projection
    mixed: bool | None = None  # several precisions, listed per layer
    fp4_outside_experts: bool | None = None  # does a plain linear layer run through the FP4 GEMM?
    size_gb: float | None = None  # bytes of the checkpoint, 10^9, less what stays on disk
    weights_gib: tuple[tuple[str, float], ...] = ()  # measured per rank, by "tp4-ep4"
    mamba_slot_gib: float | None = None  # state of one slot on one rank at tp 1

    def weights_gib_per_rank(self, tp: int, pp: int, ep: int) -> float | None:
        """Measured where it was, else the checkpoint's size over the ranks (experts dominate, so ep changes little)."""
        measured = dict(self.weights_gib).get(f"tp{tp}-ep{ep}")
        if measured or self.size_gb is None:
            return measured
        return self.size_gb * 1e9 / GIB / (tp * pp)


@dataclass(frozen=True, slots=True)
class Family:
    pattern: str  # searched in the model id, any case
    architecture: str
    facts: Facts = Facts()


# The first match counts. Sources: the published config.json of each family unless a comment says otherwise.
FAMILIES = (
    # the post on Ultra: FP4 in the experts, FP8 and BF16 elsewhere; flashinfer_cudnn without cuDNN never mattered there
    Family(r"nemotron-3-ultra", "NemotronHForCausalLM", Facts(gated=False, kv_heads=2, fp4_outside_experts=False)),
    Family(r"nemotron.*omni", "NemotronH_Nano_Omni_Reasoning_V3", Facts(multimodal=True, gated=False)),
    Family(r"nemotron-(3|h|nano|cascade)", "NemotronHForCausalLM", Facts(gated=False)),
    # checkpoints that keep everything but the routed experts in BF16
    Family(
        r"qwen3\.5-.*-a\d+b.*nvfp4",
        "Qwen3_5MoeForConditionalGeneration",
        Facts(multimodal=True, fp4_outside_experts=False),
    ),
    Family(r"qwen3\.[56].*-a\d+b", "Qwen3_5MoeForConditionalGeneration", Facts(multimodal=True, gated=True)),
    Family(r"qwen3\.[56]", "Qwen3_5ForConditionalGeneration", Facts(multimodal=True)),
    Family(r"qwen3-(coder-)?next", "Qwen3NextForCausalLM"),
    Family(r"qwen3-vl.*-a\d+b", "Qwen3VLMoeForConditionalGeneration", Facts(multimodal=True)),
    Family(r"qwen3.*-a\d+b", "Qwen3MoeForCausalLM", Facts(multimodal=False, gated=True)),
    Family(r"qwen3", "Qwen3ForCausalLM", Facts(multimodal=False)),
    # 744B parameters; weights beyond 108 GB a rank were never loaded on four nodes
    Family(
        r"glm-5(?!.*flash)",
        "GlmMoeDsaForCausalLM",
        Facts(multimodal=False, weights_gib=(("tp4-ep4", 108.0), ("tp4-ep1", 108.0), ("tp1-ep1", 108.0))),
    ),
    Family(
        r"glm-4\.[5-7]-fp8",
        "Glm4MoeForCausalLM",
        Facts(multimodal=False, q_heads=96, kv_heads=8, head_dim=128, experts=160, expert_inter=1536, size_gb=362.0),
    ),
    Family(
        r"glm-4\.[5-7](?!v|-air)",
        "Glm4MoeForCausalLM",
        Facts(multimodal=False, q_heads=96, kv_heads=8, head_dim=128, experts=160, expert_inter=1536),
    ),
    Family(r"glm-4\.[5-7]v", "Glm4vMoeForConditionalGeneration", Facts(multimodal=True)),
    Family(r"glm-4\.[5-7]", "Glm4MoeForCausalLM", Facts(multimodal=False)),
    Family(r"minimax-m3", "MiniMaxM3SparseForConditionalGeneration", Facts(multimodal=True, fp4_outside_experts=False)),
    Family(
        r"minimax-m2",
        "MiniMaxM2ForCausalLM",
        Facts(
            multimodal=False,
            q_heads=48,
            kv_heads=8,
            head_dim=128,
            experts=256,
            expert_inter=1536,
            fp4_outside_experts=False,
        ),
    ),
    Family(r"gemma-4-26b-a4b", "Gemma4ForConditionalGeneration", Facts(multimodal=True, expert_inter=704)),
    Family(r"gemma-4", "Gemma4ForConditionalGeneration", Facts(multimodal=True)),
    # 225 GiB a rank over four nodes, said the logs' own arithmetic; its Flash variant takes about 42
    Family(
        r"deepseek-v4-pro",
        "DeepseekV4ForCausalLM",
        Facts(multimodal=False, weights_gib=(("tp4-ep4", 225.0), ("tp4-ep1", 225.0))),
    ),
    Family(r"deepseek-v4", "DeepseekV4ForCausalLM", Facts(multimodal=False)),
    Family(r"deepseek-v3\.2", "DeepseekV32ForCausalLM", Facts(multimodal=False)),
    Family(r"deepseek-(v3|r1)", "DeepseekV3ForCausalLM", Facts(multimodal=False)),
    Family(r"gpt-oss", "GptOssForCausalLM", Facts(multimodal=False)),
    Family(r"kimi-k2\.[5-9]", "KimiK25ForConditionalGeneration", Facts(multimodal=True)),
    Family(r"kimi-k2", "DeepseekV3ForCausalLM", Facts(multimodal=False)),
    Family(r"step-3\.5", "Step3p5ForCausalLM", Facts(multimodal=False)),
    Family(r"llama-4", "Llama4ForConditionalGeneration", Facts(multimodal=True)),
    Family(r"llama-3", "LlamaForCausalLM", Facts(multimodal=False)),
    Family(r"mistral-(small|medium|large-3)", "Mistral3ForConditionalGeneration", Facts(multimodal=True)),
)
# What a name says of its size: the first number of billions that is neither active (A17B) nor one expert's (17B-128E).
BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])(?!-\d+e)", re.IGNORECASE)
# Published parameter counts, in billions, of families whose names leave them out.
PARAMETERS = {r"deepseek-(v3|r1)": 671.0, r"kimi-k2": 1000.0, r"llama-4-maverick": 400.0, r"llama-4-scout": 109.0}
# The least that a parameter takes, in bytes: a checkpoint is never smaller, since not every layer is packed.
LEAST_BYTES = {"modelopt": 0.5, "compressed-tensors": 0.5, "fp8": 1.0, "bf16": 2.0}
MULTIMODAL = re.compile(r"ForConditionalGeneration$|_Omni_|_VL_|VLChat|Llava")


@lru_cache(maxsize=512)
def family(model_id: str) -> Family:
    """The family of a model by its name; an empty one when nothing matches."""
    return next((known for known in FAMILIES if re.search(known.pattern, model_id, re.IGNORECASE)), Family("", ""))


def least_size_gb(model_id: str, packing: str) -> float | None:
    """The least that the checkpoint of this name can weigh; None where its name tells neither size nor packing."""
    billions = next((size for known, size in PARAMETERS.items() if re.search(known, model_id, re.IGNORECASE)), None)
    if billions is None:
        named = BILLIONS.search(model_id)
        billions = float(named.group(1)) if named else None
    if billions is None or packing not in LEAST_BYTES:
        return None
    four_bits = "nvfp4" in model_id.lower()
    return billions * (0.5625 if four_bits else LEAST_BYTES[packing])


def facts_of(model: Model) -> Facts:
    """Facts of a profile's model, completed by its family's."""
    named = family(model.id)
    known = named.facts
    if named.architecture != model.architecture:  # GLM-5.3-Flash is no GLM-5: what that weighs says nothing here
        known = replace(known, weights_gib=())
    return replace(
        known,
        multimodal=model.multimodal or bool(known.multimodal) or MULTIMODAL.search(model.architecture) is not None,
        context=model.context,
        q_heads=model.attention.q_heads,
        kv_heads=model.attention.kv_heads,
        head_dim=model.attention.head_dim,
        experts=model.experts.routed if model.experts else None,
        expert_inter=model.experts.inter if model.experts else None,
        gated=model.experts.gated if model.experts else None,
        mixed=model.checkpoint.mixed,
        size_gb=model.loaded_gb or known.size_gb,
        # A checkpoint that says its size is weighed by that; the name's figure is of another of the family.
        weights_gib=tuple(model.measured.weights_gib_per_rank.items())
        or (() if model.checkpoint.size_gb else known.weights_gib),
        mamba_slot_gib=_mamba_slot_gib(model),
    )


def _mamba_slot_gib(model: Model) -> float | None:
    """fp32 SSM state of one slot: layers x heads x head size x state size x 4 bytes (the convolution adds 1 %)."""
    part = model.mamba
    if part is None:
        return None
    return model.layers.mamba * part.heads * part.head_dim * part.state * 4 * 1.013 / GIB
