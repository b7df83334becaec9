"""The CuTe DSL MoE kernels know compute capability 10.x only, and NVFP4 by ModelOpt only."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case, within
from sparkloom.judge.rules.sources import rows


class MoeFlashInferCutedslSm121(Rule):
    id = "moe-flashinfer-cutedsl-sm121"
    severity = "error"
    scope = Scope(engine="sglang")
    why = (
        "the runner refuses every packing but ModelOpt NVFP4, and there its compiler finds no target "
        "among major versions [10] (seen up to 0.5.13; test again from 0.5.17)"
    )
    fix = "moe_runner_backend: flashinfer_cutlass for NVFP4 by ModelOpt, triton for the rest"
    evidence = (
        rows("Gemma-4 BF16, Qwen3.6-35B in FP8 and two NVFP4 packings, 0.5.11 and 0.5.12: 26 of 26 crash at startup"),
    )
    log_pattern = r"No supported CUDA architectures found for major versions \[10\]|CuteDSL MOE currently supports only"
    failing = case(flags={"moe_runner_backend": "flashinfer_cutedsl"})
    passing = case(flags={"moe_runner_backend": "triton"})

    def check(self, view: LaunchView) -> Hits:
        refused = view.packing != "modelopt" or within(view.release, "<0.5.17")
        if view.moe_runner == "flashinfer_cutedsl" and refused:
            yield Hit("moe_runner_backend is flashinfer_cutedsl on GB10", "moe_runner_backend")
