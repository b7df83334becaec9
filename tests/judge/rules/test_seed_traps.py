"""The crash rows of the posts, as a person would meet them: a shipped profile with one setting changed."""

from __future__ import annotations

import pytest

from sparkloom.base.finding import Finding
from sparkloom.inputs import inventory, profile
from sparkloom.judge import rules
from sparkloom.launch import resolve

SPARKS = inventory.load()
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
SUPER = "nvidia--nemotron-3-super-120b-a12b-nvfp4"
QWEN_EP4 = "nvidia--qwen3.5-397b-a17b-nvfp4--ep4"
GLM = "nvidia--glm-4.7-nvfp4"
TRAPS = (
    (ULTRA, "launch.mem_fraction_static=0.85", "mem-fraction-too-low", "mem_fraction_static"),
    (ULTRA, "launch.moe_runner_backend=triton", "ungated-experts-cutlass-moe", "flashinfer_cutlass"),
    (ULTRA, "launch.attention_backend=triton", "nemotronh-triton-attention", "flashinfer"),
    (ULTRA, "launch.disable_deep_gemm=true", "disable-deep-gemm-flag", "SGLANG_ENABLE_JIT_DEEPGEMM"),
    (ULTRA, "env.SGLANG_ENABLE_JIT_DEEPGEMM='off'", "env-boolean-words", '"0"'),
    (ULTRA, "launch.context_length=524288", "context-over-native", "max_position_embeddings"),
    (ULTRA, "env.NCCL_NET=Socket", "nccl-socket-fallback", "NCCL_NET"),
    (ULTRA, "env.NCCL_IB_GID_INDEX=''", "nccl-gid-index", "NCCL_IB_GID_INDEX"),
    (SUPER, "launch.fp4_gemm_backend=flashinfer_cudnn", "fp4-gemm-cudnn-missing", "flashinfer_cutlass"),
    (SUPER, "engine.carries=[]", "nemotronh-speculation-radix", "sglang#27998"),
    (QWEN_EP4, "launch.disable_cuda_graph=true", "nvfp4-ep-eager-garbage", "disable_cuda_graph: false"),
    (QWEN_EP4, "launch.moe_runner_backend=flashinfer_cutlass", "fi-cutlass-moe-illegal-instruction", "0.5.12"),
    (QWEN_EP4, "launch.max_running_requests=32", "nvfp4-ep-batch-beyond-graphs", "cuda_graph_max_bs"),
    (GLM, "launch.disable_piecewise_cuda_graph=false", "nvfp4-piecewise-graphs", "disable_piecewise_cuda_graph: true"),
    (f"{GLM}--mtp", "launch.speculative_eagle_topk=null", "eagle-topk-missing", "speculative_eagle_topk: 1"),
)


@pytest.mark.parametrize(("name", "change", "rule", "fix"), TRAPS)
def test_the_trap_is_named_with_its_fix_and_its_place(name: str, change: str, rule: str, fix: str) -> None:
    found = _findings(name, change)
    assert rule in found, f"{sorted(found)}"
    assert found[rule].severity == "error"
    assert fix in found[rule].fix
    assert found[rule].evidence and found[rule].where
    if not change.startswith("engine."):
        assert found[rule].where.startswith("--set"), "the finding points at the setting that is wrong"


@pytest.mark.parametrize("name", profile.names())
def test_no_shipped_profile_springs_a_trap(name: str) -> None:
    errors = [finding for finding in _findings(name).values() if finding.severity == "error"]
    assert not errors, "\n".join(f"{finding.rule}: {finding.message}" for finding in errors)


def _findings(name: str, *changes: str) -> dict[str, Finding]:
    return {
        finding.rule: finding for finding in rules.check(resolve.resolve(profile.load(name, overrides=changes), SPARKS))
    }
