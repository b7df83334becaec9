"""vLLM refuses a context beyond the model's own unless an environment variable allows it."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import GUIDE


class VllmContextOverNative(Rule):
    id = "vllm-context-over-native"
    severity = "error"
    scope = Scope(engine="vllm")
    why = "a ValueError at the start; hybrids without position embeddings can take it"
    fix = 'env: {VLLM_ALLOW_LONG_MAX_MODEL_LEN: "1"}'
    evidence = (GUIDE,)
    log_pattern = r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len"
    failing = case(engine="vllm", release="0.19.0", facts=Facts(context=262144), flags={"max_model_len": 1000000})
    passing = case(
        engine="vllm",
        release="0.19.0",
        facts=Facts(context=262144),
        flags={"max_model_len": 1000000},
        env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"},
    )

    def check(self, view: LaunchView) -> Hits:
        native, asked = view.facts.context, view.number("max_model_len")
        if native and asked and asked > native and view.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
            yield Hit(f"max_model_len {asked:.0f} is more than the model's {native}", "max_model_len")
