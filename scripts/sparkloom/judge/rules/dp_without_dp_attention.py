"""Plain data parallelism does not span nodes."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class DpWithoutDpAttention(Rule):
    id = "dp-without-dp-attention"
    severity = "error"
    scope = Scope(engine="sglang", nodes=">1")
    why = "the engine refuses dp_size > 1 over several nodes unless attention is data-parallel"
    fix = "dp_size: 1 (one service per model), or enable_dp_attention: true"
    evidence = (code("0.5.10 to 0.5.23"),)
    log_pattern = r"multi-node data parallel is not supported unless dp attention"
    failing = case(nodes=4, tp=4, flags={"dp_size": 2})
    passing = case(nodes=4, tp=4, flags={"dp_size": 2, "enable_dp_attention": True})

    def check(self, view: LaunchView) -> Hits:
        if (view.number("dp_size") or 1) > 1 and not view.on("enable_dp_attention"):
            yield Hit(f"dp_size is {view.flag('dp_size')} on {view.nodes} nodes without enable_dp_attention", "dp_size")
