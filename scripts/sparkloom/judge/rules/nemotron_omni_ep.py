"""Nemotron Nano Omni with expert parallelism: an illegal access while graphs are set up."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class NemotronOmniEp(Rule):
    id = "nemotron-omni-ep"
    severity = "warning"
    scope = Scope(engine="sglang", architecture="NemotronH_Nano_Omni", ep=">1")
    why = (
        "both EP=4 starts died in FlashInfer's init_cuda_graph_state, but so did one of thirteen at EP=1,"
        " and its repeat served: the cause is not settled, so this warns and predicts nothing"
    )
    fix = "parallel.ep: 1"
    evidence = (rows("Nano Omni on 0.5.13: EP=4 0 of 2, EP=1 12 of 13 with this runner"),)
    log_pattern = (
        r"init_cuda_graph_state(?s:.{0,600})illegal memory access|illegal memory access.*init_cuda_graph_state"
    )
    failing = case(architecture="NemotronH_Nano_Omni_Reasoning_V3", tp=4, ep=4)
    passing = case(architecture="NemotronH_Nano_Omni_Reasoning_V3", tp=4, ep=1)

    def check(self, view: LaunchView) -> Hits:
        yield Hit(f"ep {view.ep} on {view.architecture}", "parallel")
