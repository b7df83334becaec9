"""vLLM deals experts over all ranks or over none."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class VLLMExpertRanks(Rule):
    id = "vllm-expert-ranks"
    severity = "error"
    scope = Scope(engine="vllm", ep=">1")
    why = "--enable-expert-parallel is a switch: vLLM then deals whole experts over tp x dp ranks, no other number"
    fix = "parallel.ep: 1, or tp x dp"
    evidence = (code("FusedMoEParallelConfig.make of vLLM 0.32: ep_size is tp x dp"),)
    failing = case(engine="vllm", release="0.32.0", nodes=4, tp=4, ep=2)
    passing = case(engine="vllm", release="0.32.0", nodes=4, tp=2, dp=2, ep=4)

    def check(self, view: LaunchView) -> Hits:
        if view.ep != view.tp * view.dp:
            yield Hit(f"ep {view.ep} at tp {view.tp} x dp {view.dp}", "parallel")
