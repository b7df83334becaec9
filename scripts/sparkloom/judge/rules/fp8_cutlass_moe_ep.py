"""The CUTLASS runner for FP8 experts does not split them."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code, rows


class Fp8CutlassMoeEp(Rule):
    id = "fp8-cutlass-moe-ep"
    severity = "error"
    scope = Scope(engine="sglang", packing="fp8", ep=">1")
    why = "the engine refuses expert parallelism for this runner and packing, before it loads a weight"
    fix = "moe_runner_backend: triton, or parallel.ep: 1"
    evidence = (code("0.5.10 to 0.5.23"), rows("GLM-4.7 FP8, EP=4, 0.5.10rc0: 18 of 18 end within two minutes"))
    log_pattern = r"Cutlass MoE is only supported with ep_size == 1"
    failing = case(packing="fp8", tp=4, ep=4, flags={"moe_runner_backend": "cutlass"})
    passing = case(packing="fp8", tp=4, ep=1, flags={"moe_runner_backend": "cutlass"})

    def check(self, view: LaunchView) -> Hits:
        if view.moe_runner == "cutlass":
            yield Hit(f"moe_runner_backend is cutlass with FP8 weights and ep {view.ep}", "moe_runner_backend")
