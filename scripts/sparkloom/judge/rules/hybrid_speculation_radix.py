"""Hybrid models (linear or Mamba layers) cannot speculate with a prefix cache unless the state is double-buffered."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case, within
from sparkloom.judge.rules.sources import NAMED, code, rows

TRUE = ("true", "1", "yes", "y")  # as the engine reads a switch of its environment


class HybridSpeculationRadix(Rule):
    id = "hybrid-speculation-radix"
    severity = "error"
    scope = Scope(engine="sglang", releases=">=0.5.10,<0.5.14", architecture="Qwen3_5|Qwen3Next")
    why = (
        "auto means no_buffer up to 0.5.13, and the engine refuses that with speculation and prefix "
        "cache; from 0.5.14 auto picks extra_buffer"
    )
    fix = (
        'mamba_scheduler_strategy: extra_buffer; on 0.5.10 env SGLANG_ENABLE_SPEC_V2: "1" too (on by default from '
        "0.5.11, gone from 0.5.14)"
    )
    evidence = (
        NAMED["tuning-post"],
        rows("Qwen3.6-35B FP8 on 0.5.10: no_buffer refused twice, extra_buffer runs"),
        code("the ValueError stands in 0.5.10 to 0.5.13.post1"),
    )
    log_pattern = r"not compatible with radix cache when using --mamba-scheduler-strategy no_buffer"
    failing = case(
        release="0.5.10",
        architecture="Qwen3_5MoeForConditionalGeneration",
        flags={"speculative_algorithm": "NEXTN", "mamba_scheduler_strategy": "no_buffer"},
    )
    passing = case(
        release="0.5.10",
        architecture="Qwen3_5MoeForConditionalGeneration",
        flags={"speculative_algorithm": "NEXTN", "mamba_scheduler_strategy": "extra_buffer"},
        env={"SGLANG_ENABLE_SPEC_V2": "1"},
    )

    def check(self, view: LaunchView) -> Hits:
        strategy = view.flag("mamba_scheduler_strategy", None if view.partial else "auto")
        if not view.speculates or view.on("disable_radix_cache"):
            return
        if strategy in ("auto", "no_buffer"):
            yield Hit(
                f"speculation with mamba_scheduler_strategy {strategy} and the prefix cache on",
                "mamba_scheduler_strategy",
            )
        elif not view.partial and within(view.release, "<0.5.11") and not self._second_version(view):
            yield Hit(
                f"SGLANG_ENABLE_SPEC_V2 is off, as {view.release} has it by default, so {strategy} does not count",
                "env.SGLANG_ENABLE_SPEC_V2",
            )

    @staticmethod
    def _second_version(view: LaunchView) -> bool:
        return view.env.get("SGLANG_ENABLE_SPEC_V2", "").lower() in TRUE
