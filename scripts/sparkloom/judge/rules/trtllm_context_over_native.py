"""TensorRT-LLM refuses a long context unless an environment variable allows it."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import GUIDE


class TrtllmContextOverNative(Rule):
    id = "trtllm-context-over-native"
    severity = "error"
    scope = Scope(engine="trtllm")
    why = "max_seq_len beyond the config's positions stops the start"
    fix = 'env: {TLLM_ALLOW_LONG_MAX_MODEL_LEN: "1"}'
    evidence = (GUIDE,)
    log_pattern = r"max_seq_len.*(exceeds|larger than|greater than).*max_position_embeddings"
    failing = case(engine="trtllm", release="1.3.0rc9", facts=Facts(context=262144), flags={"max_seq_len": 1048576})
    passing = case(
        engine="trtllm",
        release="1.3.0rc9",
        facts=Facts(context=262144),
        flags={"max_seq_len": 1048576},
        env={"TLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"},
    )

    def check(self, view: LaunchView) -> Hits:
        native, asked = view.facts.context, view.number("max_seq_len")
        if native and asked and asked > native and view.env.get("TLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
            yield Hit(f"max_seq_len {asked:.0f} is more than the model's {native}", "max_seq_len")
