"""NemotronH starts with a Mamba layer, and SGLang's triton attention looks for attention in the first."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class NemotronHTritonAttention(Rule):
    id = "nemotronh-triton-attention"
    severity = "error"
    scope = Scope(engine="sglang", releases="<0.5.19", architecture="NemotronH")
    why = "the engine refuses triton attention for this architecture: its first layer might not be an attention layer"
    fix = "attention_backend: flashinfer"
    evidence = (
        Source("forum posts on Nemotron Ultra and Super, four Sparks", "2026-06"),
        Source(
            "the assertion stands in the released argument code of 0.5.10 to 0.5.18 and is gone in 0.5.19", "2026-11"
        ),
    )
    log_pattern = r"NemotronH\w* does not support triton attention backend"
    failing = case(architecture="NemotronHForCausalLM", flags={"attention_backend": "triton"})
    passing = case(architecture="NemotronHForCausalLM", flags={"attention_backend": "flashinfer"})

    def check(self, view: LaunchView) -> Hits:
        if view.flag("attention_backend") == "triton":
            yield Hit(f"attention_backend is triton on {view.architecture}", "attention_backend")
