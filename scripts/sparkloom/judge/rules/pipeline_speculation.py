"""Speculative decoding knows no pipeline stages."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code, rows


class PipelineSpeculation(Rule):
    id = "pipeline-speculation"
    severity = "error"
    scope = Scope(engine="sglang", pp=">1")
    why = "the draft worker needs embedding and head on one rank; the engine stops within a minute"
    fix = "parallel: {tp: 4, pp: 1}, or no speculative_algorithm"
    evidence = (
        rows("GLM-4.7 PP=4 with NEXTN on 0.5.10rc0 and 0.5.10: 2 of 2 crash"),
        code("pp with speculation is refused"),
    )
    failing = case(pp=4, nodes=4, flags={"speculative_algorithm": "NEXTN"})
    passing = case(tp=4, nodes=4, flags={"speculative_algorithm": "NEXTN"})

    def check(self, view: LaunchView) -> Hits:
        if view.speculates:
            yield Hit(
                f"speculative_algorithm is {view.flag('speculative_algorithm')} with pp {view.pp}",
                "speculative_algorithm",
            )
