"""FlashInfer's CUTLASS and CuTe DSL MoE split experts over all ranks or over none."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class MoeEpAllOrNone(Rule):
    id = "moe-ep-all-or-none"
    severity = "error"
    scope = Scope(engine="sglang", releases=">=0.5.9", ep=">1")
    why = "the engine asserts ep to be 1 or tp for these runners"
    fix = "parallel.ep: 1 or the same as parallel.tp"
    evidence = (code("0.5.10 to 0.5.23"),)
    log_pattern = r"expert parallel size must be 1 or the same as the tensor parallel size"
    failing = case(tp=4, ep=2, flags={"moe_runner_backend": "flashinfer_cutlass"})
    passing = case(tp=4, ep=4, flags={"moe_runner_backend": "flashinfer_cutlass"})

    def check(self, view: LaunchView) -> Hits:
        if view.moe_runner in ("flashinfer_cutlass", "flashinfer_cutedsl") and view.ep != view.tp:
            yield Hit(f"ep {view.ep} at tp {view.tp} with moe_runner_backend {view.moe_runner}", "parallel")
