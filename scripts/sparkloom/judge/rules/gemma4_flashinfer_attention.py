"""Gemma 4's full-attention layers have heads of 512, beyond what FlashInfer's kernels are built for."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code, rows


class Gemma4FlashInferAttention(Rule):
    id = "gemma4-flashinfer-attention"
    severity = "error"
    scope = Scope(engine="sglang", architecture="Gemma4")
    why = (
        "full-attention heads of 512 exceed FlashInfer's tile configurations: graph capture fails, and in"
        " eager mode the first request; later releases refuse it at the arguments"
    )
    fix = "attention_backend: triton"
    evidence = (
        rows("Gemma-4 26B and 31B, 0.5.10 and 0.5.11: 21 of 21 fail with flashinfer, all run with triton"),
        code("from 0.5.13 an assertion names the backends that Gemma 4 supports"),
    )
    log_pattern = r"prefill\.cuh.*Invalid configuration|Gemma4 only supports"
    failing = case(architecture="Gemma4ForConditionalGeneration", flags={"attention_backend": "flashinfer"})
    passing = case(architecture="Gemma4ForConditionalGeneration", flags={"attention_backend": "triton"})

    def check(self, view: LaunchView) -> Hits:
        if view.attention == "flashinfer":
            yield Hit(f"attention_backend is flashinfer on {view.architecture}", "attention_backend")
