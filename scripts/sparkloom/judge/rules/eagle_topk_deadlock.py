"""A draft tree of four branches was seen to hang on an NVFP4 hybrid model."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class EagleTopkDeadlock(Rule):
    id = "eagle-topk-deadlock"
    severity = "warning"
    scope = Scope(engine="sglang", releases=">=0.5.12,<0.5.14", architecture="Qwen3_5", packing="modelopt")
    why = (
        "topk 4 with 4 draft tokens gave no token in 600 s on Qwen3.6-27B NVFP4 (0.5.12); topk 2 ran, and"
        " the FP8 checkpoint ran with topk 4 on 0.5.11: seen once, cause not known"
    )
    fix = "speculative_eagle_topk: 1 (2 brings nothing)"
    evidence = (rows("Qwen3.6-27B: topk 1 and 2 on NVFP4, topk 4 on FP8; the hang itself is in the same public log"),)
    failing = case(
        release="0.5.12",
        architecture="Qwen3_5ForConditionalGeneration",
        packing="modelopt",
        flags={"speculative_algorithm": "NEXTN", "speculative_eagle_topk": 4},
    )
    passing = case(
        release="0.5.12",
        architecture="Qwen3_5ForConditionalGeneration",
        packing="modelopt",
        flags={"speculative_algorithm": "NEXTN", "speculative_eagle_topk": 2},
    )

    def check(self, view: LaunchView) -> Hits:
        if view.speculates and (view.number("speculative_eagle_topk") or 0) >= 4:
            yield Hit(f"speculative_eagle_topk is {view.flag('speculative_eagle_topk')}", "speculative_eagle_topk")
