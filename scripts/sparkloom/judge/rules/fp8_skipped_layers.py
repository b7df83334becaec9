"""Block-FP8 Qwen3.5 and 3.6: a layer that should stay unquantized was recognised by part of its name."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case, within
from sparkloom.judge.rules.sources import code, rows


class Fp8SkippedLayers(Rule):
    id = "fp8-skipped-layers"
    severity = "error"
    scope = Scope(
        engine="sglang", releases="<0.5.12", architecture="Qwen3_5", packing="fp8", unless_carries=("sglang#23467",)
    )
    why = (
        "'mlp.gate' in the list of unquantized layers also matched 'mlp.gate_proj' and its like, so their"
        " FP8 scales were never applied: word salad from a server that looks healthy. 0.5.11 compares "
        "whole names; the MoE checkpoint also needed the launch patch there, and which 0.5.10 runs of it "
        "had the patch was not logged: there the rule asks for the statement that it is missing"
    )
    fix = "an image of release 0.5.12 or newer (or one that carries sglang#23467: say so in engine.carries)"
    evidence = (
        rows(
            "Qwen3.6-27B FP8 on 0.5.10: 4 of 4 garbage without the fix, 8 of 8 sound with it; Qwen3.6-35B on "
            "0.5.11: 4 of 4 garbage before it"
        ),
        code("substring match in 0.5.9 and 0.5.10, whole names from 0.5.11"),
    )
    failing = case(release="0.5.10", architecture="Qwen3_5ForConditionalGeneration", packing="fp8")
    passing = case(release="0.5.11", architecture="Qwen3_5ForConditionalGeneration", packing="fp8")

    def check(self, view: LaunchView) -> Hits:
        dense = view.architecture == "Qwen3_5ForConditionalGeneration" and within(view.release, "<0.5.11")
        if dense or "sglang#23467" in view.lacks:
            yield Hit(
                f"release {view.release} without sglang#23467 and FP8 weights of {view.architecture}", "quantization"
            )
