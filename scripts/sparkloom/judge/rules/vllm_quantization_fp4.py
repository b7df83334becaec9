"""`fp4` is no quantization method of vLLM."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import GUIDE, code


class VllmQuantizationFp4(Rule):
    id = "vllm-quantization-fp4"
    severity = "error"
    scope = Scope(engine="vllm")
    why = (
        "no release knows the word. The parser accepts any, so the vendor's command works only if the "
        "checkpoint overrides it"
    )
    fix = "quantization: modelopt_fp4, or leave it out"
    evidence = (GUIDE, code("registered methods of 0.17.1, 0.18.1, 0.19.0 and 0.33.0"))
    log_pattern = r"Unknown quantization method: fp4|Invalid quantization method: fp4"
    failing = case(engine="vllm", release="0.19.0", flags={"quantization": "fp4"})
    passing = case(engine="vllm", release="0.19.0", flags={"quantization": "modelopt_fp4"})

    def check(self, view: LaunchView) -> Hits:
        if view.flag("quantization") == "fp4":
            yield Hit("quantization is fp4", "quantization")
