"""FlashInfer's CUTLASS MoE takes ModelOpt weights and BF16, not compressed-tensors."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code, rows


class CompressedTensorsMoeRunner(Rule):
    id = "compressed-tensors-moe-runner"
    severity = "error"
    scope = Scope(engine="sglang", packing="compressed-tensors")
    why = (
        "the engine checks the quantization for this runner when it reads its arguments, and refuses compressed-tensors"
    )
    fix = "moe_runner_backend: triton"
    evidence = (
        rows("Qwen3.6-35B by RedHat, 0.5.12: 12 of 12 refused, triton and cutlass run"),
        code("the list stands in 0.5.10 to 0.5.23"),
    )
    log_pattern = r"Invalid quantization '[\w-]+'|FlashInfer Cutlass MOE supports only"
    failing = case(packing="compressed-tensors", flags={"moe_runner_backend": "flashinfer_cutlass"})
    passing = case(packing="compressed-tensors", flags={"moe_runner_backend": "triton"})

    def check(self, view: LaunchView) -> Hits:
        if view.moe_runner == "flashinfer_cutlass":
            yield Hit("moe_runner_backend is flashinfer_cutlass with compressed-tensors weights", "moe_runner_backend")
