"""A chain of drafts (topk 1) has exactly one token more than it has steps."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import NAMED, code


class DraftTokensNotStepsPlusOne(Rule):
    id = "draft-tokens-not-steps-plus-one"
    severity = "warning"
    scope = Scope(engine="sglang", releases=">=0.5.10rc0")
    why = (
        "the engine changes num_draft_tokens to steps + 1 and says so once: what is measured is not what "
        "is written (the posts' '5/5' and '5/7' both ran as 5/6)"
    )
    fix = "speculative_num_draft_tokens: speculative_num_steps + 1"
    evidence = (code("0.5.10 to 0.5.23"), NAMED["super-post"])
    log_pattern = r"speculative_num_draft_tokens is adjusted to speculative_num_steps \+ 1"
    failing = case(
        flags={
            "speculative_algorithm": "EAGLE",
            "speculative_eagle_topk": 1,
            "speculative_num_steps": 5,
            "speculative_num_draft_tokens": 5,
        }
    )
    passing = case(
        flags={
            "speculative_algorithm": "EAGLE",
            "speculative_eagle_topk": 1,
            "speculative_num_steps": 3,
            "speculative_num_draft_tokens": 4,
        }
    )

    def check(self, view: LaunchView) -> Hits:
        steps, drafts = view.number("speculative_num_steps"), view.number("speculative_num_draft_tokens")
        if view.speculates and view.number("speculative_eagle_topk") == 1 and steps and drafts and drafts != steps + 1:
            yield Hit(f"{drafts:.0f} draft tokens for {steps:.0f} steps at topk 1", "speculative_num_draft_tokens")
