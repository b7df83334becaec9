"""--disable-deep-gemm is quoted in a post and exists in no release."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import ULTRA_POST, code


class DisableDeepGemmFlag(Rule):
    id = "disable-deep-gemm-flag"
    severity = "error"
    scope = Scope(engine="sglang")
    why = (
        "the posted command is refused verbatim by every release from 0.5.9 to 0.5.23; the switch is an "
        "environment variable"
    )
    fix = 'drop disable_deep_gemm; env: {SGLANG_ENABLE_JIT_DEEPGEMM: "0"}'
    evidence = (ULTRA_POST, code("no such flag in 18 releases"))
    log_pattern = r"unrecognized arguments:.*--disable-deep-gemm"
    failing = case(flags={"disable_deep_gemm": True})
    passing = case(env={"SGLANG_ENABLE_JIT_DEEPGEMM": "0"})

    def check(self, view: LaunchView) -> Hits:
        if "disable_deep_gemm" in view.flags:
            yield Hit("disable_deep_gemm is no flag of SGLang", "disable_deep_gemm")
