"""DeepGEMM is on by default and has no kernels for GB10."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import ULTRA_POST, code


class DeepgemmEnabled(Rule):
    id = "deepgemm-enabled"
    severity = "warning"
    scope = Scope(engine="sglang", packing="fp8|modelopt")
    why = (
        "any device of SM90 and newer gets it; on SM121 it compiles without end or stops with 'Unknown "
        "recipe', and its compilers exhaust the host's memory"
    )
    fix = 'env: {SGLANG_ENABLE_JIT_DEEPGEMM: "0"}'
    evidence = (ULTRA_POST, code("default True in 0.5.10 to 0.5.23"))
    log_pattern = r"Unknown recipe|deep_gemm.*(Error|assert)"
    failing = case(packing="fp8")
    passing = case(packing="fp8", env={"SGLANG_ENABLE_JIT_DEEPGEMM": "0"})

    def check(self, view: LaunchView) -> Hits:
        value = view.env.get("SGLANG_ENABLE_JIT_DEEPGEMM", "1").lower()
        uses = view.packing == "fp8" or view.facts.mixed
        if uses and not view.partial and value not in ("0", "false", "no", "n"):
            yield Hit(
                f"SGLANG_ENABLE_JIT_DEEPGEMM is {value if 'SGLANG_ENABLE_JIT_DEEPGEMM' in view.env else 'not set'}",
                "env.SGLANG_ENABLE_JIT_DEEPGEMM",
            )
