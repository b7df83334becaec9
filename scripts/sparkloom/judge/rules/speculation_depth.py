"""Deeper drafts accept more and yield less on this memory."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import SUPER_POST, rows


class SpeculationDepth(Rule):
    id = "speculation-depth"
    severity = "info"
    scope = Scope(engine="sglang")
    why = (
        "each extra draft step reads the draft's weights again; 3 steps with 4 tokens beat the cookbook's"
        " 5 on every large model measured, 2 with 3 on Qwen3.6-35B-A3B"
    )
    fix = "speculative_num_steps: 3, speculative_num_draft_tokens: 4 (measure 2 and 3 on small models)"
    evidence = (SUPER_POST, rows("Super, Qwen3.5-122B and 397B, Qwen3.6-35B: n=8 falls by 9 to 24 % from 3 to 5 steps"))
    failing = case(
        flags={"speculative_algorithm": "EAGLE", "speculative_num_steps": 5, "speculative_num_draft_tokens": 6}
    )
    passing = case(
        flags={"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_num_draft_tokens": 4}
    )

    def check(self, view: LaunchView) -> Hits:
        steps = view.number("speculative_num_steps")
        if view.speculates and steps is not None and steps > 4:
            yield Hit(f"speculative_num_steps is {steps:.0f}", "speculative_num_steps")
