"""A context beyond the model's own is refused unless the config is overridden."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import SUPER_POST, code


class ContextOverNative(Rule):
    id = "context-over-native"
    severity = "error"
    predicts_failure = False  # the logs seldom repeat the override
    scope = Scope(engine="sglang")
    why = "a ValueError at the start; NoPE hybrids take 512K and more at almost no cost once the config allows it"
    fix = (
        'json_model_override_args: {max_position_embeddings: N} (or env SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN="1")'
    )
    evidence = (code("0.5.10 to 0.5.23"), SUPER_POST)
    log_pattern = r"context_length \(\d+\) is greater than the derived context_length"
    failing = case(facts=Facts(context=262144), flags={"context_length": 524288})
    passing = case(
        facts=Facts(context=262144),
        flags={"context_length": 524288, "json_model_override_args": {"max_position_embeddings": 524288}},
    )

    def check(self, view: LaunchView) -> Hits:
        native, asked = view.facts.context, view.number("context_length")
        allowed = view.flag("json_model_override_args") or view.env.get(
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", ""
        ).lower() in ("1", "true", "yes", "y")
        if native and asked and asked > native and not allowed:
            yield Hit(f"context_length {asked:.0f} is more than the model's {native}", "context_length")
