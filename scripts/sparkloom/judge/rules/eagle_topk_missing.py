"""NEXTN and EAGLE with steps and draft tokens, but no topk, end in a TypeError."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import TUNING_POST, code


class EagleTopkMissing(Rule):
    id = "eagle-topk-missing"
    severity = "error"
    predicts_failure = False  # logs seldom repeat every flag: an absent topk in a row is not an absent flag
    scope = Scope(engine="sglang", releases=">=0.5.10rc0")
    why = (
        "the argument code compares topk with 1 before it has a value; the MTP lines in the posts leave "
        "it out and cannot have run as printed"
    )
    fix = "speculative_eagle_topk: 1"
    evidence = (code("'>' not supported between NoneType and int, 0.5.10 to 0.5.23"), TUNING_POST)
    log_pattern = r"TypeError: '>' not supported between instances of 'NoneType' and 'int'"
    failing = case(
        flags={"speculative_algorithm": "NEXTN", "speculative_num_steps": 3, "speculative_num_draft_tokens": 4}
    )
    passing = case(
        flags={
            "speculative_algorithm": "NEXTN",
            "speculative_num_steps": 3,
            "speculative_num_draft_tokens": 4,
            "speculative_eagle_topk": 1,
        }
    )

    def check(self, view: LaunchView) -> Hits:
        algorithm = str(view.flag("speculative_algorithm", "")).upper()
        if (
            algorithm in ("NEXTN", "EAGLE", "EAGLE3")
            and view.flag("speculative_eagle_topk") is None
            and view.flag("speculative_num_steps") is not None
        ):
            yield Hit("speculative_num_steps is set and speculative_eagle_topk is not", "speculative_eagle_topk")
