"""MiniMax-M2 could not lend its embedding and head to a draft before 0.5.12."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code, rows


class MinimaxM2Nextn(Rule):
    id = "minimax-m2-nextn"
    severity = "error"
    scope = Scope(engine="sglang", releases="<0.5.12", architecture="MiniMaxM2")
    why = (
        "the model class has no set_embed_and_head; patched in, the draft loads the weights a second time"
        " (36 GB more per rank) and runs out of memory or dies in its first steps"
    )
    fix = "no speculative_algorithm on this release"
    evidence = (
        rows(
            "MiniMax-M2.5 with NEXTN on 0.5.9 and 0.5.10rc0: 3 of 3 fail; M2.7 on 0.5.12.post1 runs, slower "
            "than without"
        ),
        code("no such method up to 0.5.10"),
    )
    log_pattern = r"MiniMaxM2\w*' object has no attribute 'set_embed_and_head'|no set_embed_and_head"
    failing = case(release="0.5.10", architecture="MiniMaxM2ForCausalLM", flags={"speculative_algorithm": "NEXTN"})
    passing = case(
        release="0.5.12.post1", architecture="MiniMaxM2ForCausalLM", flags={"speculative_algorithm": "NEXTN"}
    )

    def check(self, view: LaunchView) -> Hits:
        if view.speculates:
            yield Hit(
                f"speculative_algorithm is {view.flag('speculative_algorithm')} on release {view.release}",
                "speculative_algorithm",
            )
