"""ModelOpt checkpoints that mix W4A16 and FP8 layers have no quantization method before 0.5.14."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class MixedNvfp4Upstream(Rule):
    id = "mixed-nvfp4-upstream"
    severity = "error"
    scope = Scope(
        engine="sglang",
        releases="<0.5.14",
        architecture="Qwen3_5",
        packing="modelopt",
        unless_carries=("patch:modelopt-mixed",),
    )
    why = "no method claims the weight-only FP4 layers, and loading ends with a KeyError for their second scale"
    fix = "a checkpoint with one precision (by mmangkad or RedHat), or an image that carries the dispatch patches"
    evidence = (Source("launch patches p21 and p22 of vroomfondel/dgxarley", "2026"),)
    log_pattern = r"KeyError: .*weight_scale_2"
    failing = case(
        release="0.5.12", architecture="Qwen3_5MoeForConditionalGeneration", packing="modelopt", facts=Facts(mixed=True)
    )
    passing = case(
        release="0.5.12",
        architecture="Qwen3_5MoeForConditionalGeneration",
        packing="modelopt",
        facts=Facts(mixed=False),
    )

    def check(self, view: LaunchView) -> Hits:
        if view.facts.mixed:
            yield Hit(f"a mixed-precision checkpoint of {view.architecture} on release {view.release}", "quantization")
