"""Models whose drafts are accepted too seldom to pay."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import TUNING_POST, rows


class SpeculationNetLoss(Rule):
    id = "speculation-net-loss"
    severity = "warning"
    scope = Scope(engine="sglang", architecture="MiniMaxM2|Qwen3Moe")
    why = "measured as a loss: MiniMax-M2.7 with NEXTN -40 % at eight requests, Qwen3-235B with EAGLE3 accepts 9 %"
    fix = "no speculative_algorithm"
    evidence = (rows("MiniMax-M2.7 with NEXTN: 84 and 71 tok/s at n=8 against 136 without"), TUNING_POST)
    failing = case(
        release="0.5.12.post1", architecture="MiniMaxM2ForCausalLM", flags={"speculative_algorithm": "NEXTN"}
    )
    passing = case(release="0.5.12.post1", architecture="MiniMaxM2ForCausalLM")

    def check(self, view: LaunchView) -> Hits:
        if view.speculates:
            yield Hit(
                f"speculative_algorithm is {view.flag('speculative_algorithm')} on {view.architecture}",
                "speculative_algorithm",
            )
