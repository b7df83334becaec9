"""Two variables of the vendor's vLLM command are gone in newer releases."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import GUIDE, code


class VllmGoneVariables(Rule):
    id = "vllm-gone-variables"
    severity = "warning"
    scope = Scope(engine="vllm", releases=">=0.33.0")
    why = "the engine silently ignores unknown variables, so the backend that they chose is no longer used"
    fix = "remove them and choose the kernels by flag (moe_backend) on this release"
    evidence = (
        GUIDE,
        code("VLLM_NVFP4_GEMM_BACKEND and VLLM_USE_FLASHINFER_MOE_FP4: present in 0.17.1 to 0.19.0, absent in 0.33.0"),
    )
    failing = case(engine="vllm", release="0.33.0", env={"VLLM_NVFP4_GEMM_BACKEND": "marlin"})
    passing = case(engine="vllm", release="0.19.0", env={"VLLM_NVFP4_GEMM_BACKEND": "marlin"})

    def check(self, view: LaunchView) -> Hits:
        for name in ("VLLM_NVFP4_GEMM_BACKEND", "VLLM_USE_FLASHINFER_MOE_FP4"):
            if name in view.env:
                yield Hit(f"{name} means nothing to release {view.release}", f"env.{name}")
