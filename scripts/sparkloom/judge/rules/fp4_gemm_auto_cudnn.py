"""Before 0.5.10 `auto` chose the cuDNN FP4 GEMM."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class Fp4GemmAutoCudnn(Rule):
    id = "fp4-gemm-auto-cudnn"
    severity = "warning"
    scope = Scope(engine="sglang", releases="<0.5.10rc0", packing="modelopt")
    why = "auto resolved to cuDNN there, and illegal instructions followed after minutes of serving on three nodes"
    fix = "fp4_gemm_backend: flashinfer_cutlass"
    evidence = (rows("MiniMax-M2.5 on three nodes, 0.5.9 snapshot; on two nodes auto was seen to serve"),)
    failing = case(release="0.5.9", packing="modelopt", flags={"fp4_gemm_backend": "auto"})
    passing = case(release="0.5.9", packing="modelopt", flags={"fp4_gemm_backend": "flashinfer_cutlass"})

    def check(self, view: LaunchView) -> Hits:
        if view.flag("fp4_gemm_backend") == "auto":
            yield Hit("fp4_gemm_backend is auto", "fp4_gemm_backend")
