"""FP8 experts have no FlashInfer CUTLASS runner in SGLang."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import rows


class Fp8FlashInferCutlassMoe(Rule):
    id = "fp8-flashinfer-cutlass-moe"
    severity = "error"
    scope = Scope(engine="sglang", packing="fp8")
    why = (
        "with --quantization fp8 the argument check refuses the runner; when the checkpoint alone says "
        "FP8, that check sees nothing and the method object is built without a runner: AttributeError at "
        "capture, or at the first request"
    )
    fix = "moe_runner_backend: triton"
    evidence = (
        rows("Qwen3.6-35B FP8, 0.5.10 to 0.5.12, and GLM-4.7 FP8, 0.5.10rc0: 36 of 36 fail"),
        Source("upstream pull request 21872", "2026"),
    )
    log_pattern = r"'Fp8MoEMethod' object has no attribute 'runner'"
    failing = case(packing="fp8", flags={"moe_runner_backend": "flashinfer_cutlass"})
    passing = case(packing="fp8", flags={"moe_runner_backend": "triton"})

    def check(self, view: LaunchView) -> Hits:
        if view.moe_runner == "flashinfer_cutlass":
            yield Hit("moe_runner_backend is flashinfer_cutlass with FP8 weights", "moe_runner_backend")
