"""AWQ experts through the plain AWQ path are unpacked to FP16."""

import re

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class AwqMoeQuantization(Rule):
    id = "awq-moe-quantization"
    severity = "error"
    scope = Scope(engine="sglang")
    why = "awq falls back to FP16 experts and runs out of memory; awq_marlin repacks all of them at once and does too"
    fix = "quantization: moe_wna16"
    evidence = (Source("pitfall list of vroomfondel/dgxarley", "2026"),)
    failing = case(model_id="org/Model-30B-A3B-AWQ", flags={"quantization": "awq"})
    passing = case(model_id="org/Model-30B-A3B-AWQ", flags={"quantization": "moe_wna16"})

    def check(self, view: LaunchView) -> Hits:
        experts = view.facts.experts or re.search(r"-A\d+(\.\d+)?B", view.model_id)
        if experts and view.flag("quantization") in ("awq", "awq_marlin"):
            yield Hit(f"quantization is {view.flag('quantization')} on a model with experts", "quantization")
