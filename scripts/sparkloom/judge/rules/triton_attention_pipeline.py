"""Triton attention asks the KV pool for layer 0 on every pipeline rank."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code, rows


class TritonAttentionPipeline(Rule):
    id = "triton-attention-pipeline"
    severity = "error"
    # architectures whose class tells the pool its first layer (0.5.10); the others pool all layers and are spared
    scope = Scope(
        engine="sglang",
        releases="<0.5.19",
        architecture="Glm4|Qwen2|Qwen3(?!_5|Next)|Deepseek|Llama|Mixtral|GptOss|KimiK25|Step3p5|Bailing",
        pp=">2",
    )
    why = (
        "to learn the width of a value head the backend reads layer 0 of the rank's own pool; from the "
        "third rank on that index lies outside the pool and the start ends with an IndexError, in eager "
        "mode too"
    )
    fix = "attention_backend: flashinfer, or parallel: {tp: 4, pp: 1}"
    evidence = (
        rows(
            "GLM-4.7 with PP=4 on 0.5.10rc0 and 0.5.10: 35 of 35 crash; MiniMax-M2.5, whose class does not "
            "report its first layer, runs"
        ),
        code("0.5.10 to 0.5.17: the value buffer of layer 0; 0.5.19 no longer asks for it"),
    )
    log_pattern = r"get_value_buffer(?s:.{0,400})IndexError: list index out of range"
    failing = case(
        release="0.5.10", architecture="Glm4MoeForCausalLM", pp=4, nodes=4, flags={"attention_backend": "triton"}
    )
    passing = case(
        release="0.5.10", architecture="MiniMaxM2ForCausalLM", pp=4, nodes=4, flags={"attention_backend": "triton"}
    )

    def check(self, view: LaunchView) -> Hits:
        if view.attention == "triton":
            yield Hit(f"attention_backend is triton with pp {view.pp} on {view.architecture}", "attention_backend")
