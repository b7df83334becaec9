"""The TensorRT-LLM MoE kernels that FlashInfer brings are built for SM100 only."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class MoeFlashInferTrtllmSm121(Rule):
    id = "moe-flashinfer-trtllm-sm121"
    severity = "error"
    scope = Scope(engine="sglang")
    why = "these batched GEMMs ship as SM100 binaries; GB10 is SM121 and cannot run them, whatever the model or packing"
    fix = "moe_runner_backend: flashinfer_cutlass for NVFP4 by ModelOpt, triton for the rest"
    evidence = (rows("Qwen3.5-122B and 397B, Qwen3.6-35B in two packings, 0.5.12: 17 of 17 crash at startup"),)
    log_pattern = r"trtllm_batched_gemm_runner\.cu.*Error|bmm_\w*sm100f"
    failing = case(flags={"moe_runner_backend": "flashinfer_trtllm"})
    passing = case(flags={"moe_runner_backend": "flashinfer_cutlass"})

    def check(self, view: LaunchView) -> Hits:
        if view.moe_runner.startswith("flashinfer_trtllm"):
            yield Hit(f"moe_runner_backend is {view.moe_runner} on GB10", "moe_runner_backend")
