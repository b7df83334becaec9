"""extra_buffer is refused for NemotronH before 0.5.13."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class NemotronhExtraBuffer(Rule):
    id = "nemotronh-extra-buffer"
    severity = "error"
    scope = Scope(
        engine="sglang", releases=">=0.5.10rc0,<0.5.13", architecture="NemotronH", unless_carries=("sglang#27998",)
    )
    why = "the engine refuses it for this architecture"
    fix = "mamba_scheduler_strategy: no_buffer, or leave it out"
    evidence = (code("refused up to 0.5.12.post1, accepted from 0.5.13"),)
    log_pattern = r"mamba extra_buffer is not supported for \w+ model"
    failing = case(
        release="0.5.12", architecture="NemotronHForCausalLM", flags={"mamba_scheduler_strategy": "extra_buffer"}
    )
    passing = case(
        release="0.5.13", architecture="NemotronHForCausalLM", flags={"mamba_scheduler_strategy": "extra_buffer"}
    )

    def check(self, view: LaunchView) -> Hits:
        if view.flag("mamba_scheduler_strategy") == "extra_buffer":
            yield Hit(f"mamba_scheduler_strategy is extra_buffer on {view.architecture}", "mamba_scheduler_strategy")
