"""SGLang's own NVFP4 MoE kernel reads per-expert scales of all experts, whatever rank it runs on."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code, rows


class Nvfp4EpBlockwiseMoe(Rule):
    id = "nvfp4-ep-blockwise-moe"
    severity = "error"
    scope = Scope(engine="sglang", releases="<0.5.16", packing="modelopt", ep=">1", unless_carries=("patch:nvfp4-ep",))
    why = (
        "triton and cutlass both lead to cutlass_moe_fp4; under expert parallelism its input scales are "
        "not cut to the rank's experts and its parameters count all experts: a device assertion at "
        "capture, or requests that end with 0 tokens in eager mode"
    )
    fix = (
        "moe_runner_backend: flashinfer_cutlass where the release can, or parallel.ep: 1, or the EP patches "
        "applied at start (engine.patches: [nvfp4-ep])"
    )
    evidence = (
        rows(
            "MiniMax-M2.5, GLM-4.7, Qwen3-235B and unpatched Qwen3.5-397B with EP=4, 0.5.9 to 0.5.10: every run fails"
        ),
        code("0.5.10: expert-wide input scales; the function is gone in 0.5.16"),
    )
    log_pattern = r"nvfp4_blockwise_moe\.cuh?"
    failing = case(release="0.5.10", packing="modelopt", tp=4, ep=4, flags={"moe_runner_backend": "triton"})
    passing = case(release="0.5.10", packing="modelopt", tp=4, ep=1, flags={"moe_runner_backend": "triton"})

    def check(self, view: LaunchView) -> Hits:
        if view.nvfp4 and view.moe_runner in ("triton", "cutlass"):
            yield Hit(
                f"moe_runner_backend is {view.moe_runner} with NVFP4 experts and ep {view.ep}", "moe_runner_backend"
            )
