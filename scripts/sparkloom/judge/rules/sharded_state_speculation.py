"""A sharded-state checkpoint has no draft weights under its own names."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class ShardedStateSpeculation(Rule):
    id = "sharded-state-speculation"
    severity = "error"
    scope = Scope(engine="sglang")
    why = "the draft inherits the load format and ends with a KeyError for its first tensor"
    fix = "speculative_draft_load_format: auto"
    evidence = (Source("bug notes of vroomfondel/dgxarley", "2026"),)
    failing = case(flags={"load_format": "sharded_state", "speculative_algorithm": "NEXTN"})
    passing = case(
        flags={
            "load_format": "sharded_state",
            "speculative_algorithm": "NEXTN",
            "speculative_draft_load_format": "auto",
        }
    )

    def check(self, view: LaunchView) -> Hits:
        if (
            view.flag("load_format") == "sharded_state"
            and view.speculates
            and view.flag("speculative_draft_load_format") is None
        ):
            yield Hit("load_format sharded_state with speculation", "speculative_draft_load_format")
