"""FlashInfer's FP4 MoE kernels in vLLM are for larger Blackwells."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import GUIDE, PSA_POST


class VllmFlashInferMoeFp4(Rule):
    id = "vllm-flashinfer-moe-fp4"
    severity = "warning"
    scope = Scope(engine="vllm", releases="<0.33.0", packing="modelopt")
    why = "the vendor turns them off on one Spark and uses Marlin"
    fix = 'env: {VLLM_USE_FLASHINFER_MOE_FP4: "0", VLLM_NVFP4_GEMM_BACKEND: marlin}, moe_backend: marlin'
    evidence = (GUIDE, PSA_POST)
    failing = case(engine="vllm", release="0.19.0", packing="modelopt", env={"VLLM_USE_FLASHINFER_MOE_FP4": "1"})
    passing = case(engine="vllm", release="0.19.0", packing="modelopt", env={"VLLM_USE_FLASHINFER_MOE_FP4": "0"})

    def check(self, view: LaunchView) -> Hits:
        if view.env.get("VLLM_USE_FLASHINFER_MOE_FP4", "0") == "1":
            yield Hit("VLLM_USE_FLASHINFER_MOE_FP4 is 1", "env.VLLM_USE_FLASHINFER_MOE_FP4")
