"""FlashInfer merges attention states with one thread block per token: heads x head slices, 1,024 threads at most."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class FlashInferMergeThreads(Rule):
    id = "flashinfer-merge-threads"
    severity = "error"
    scope = Scope(engine="sglang", packing="(?!gguf).*")
    why = (
        "merge_state launches (query heads per rank) x (head size / 8) threads; above 1,024 the launch is"
        " invalid. It is needed as soon as requests share a cached prefix, so a single request works and "
        "four fail with 0 tokens. Tensor parallelism divides the heads; a pipeline does not"
    )
    fix = "parallel: {tp: 4, pp: 1} so that each rank holds a quarter of the heads"
    evidence = (
        rows(
            "GLM-4.7 (96 heads of 128) with PP=4: n=1 works, n>=4 never; MiniMax-M2.5 (48 heads) with PP=3 "
            "and 4 and GLM-4.7 with TP=4 are fine"
        ),
    )
    log_pattern = r"[Mm]erge_?[Ss]tate\w*.*invalid (argument|configuration)"
    failing = case(
        architecture="Glm4MoeForCausalLM",
        pp=4,
        nodes=4,
        facts=Facts(q_heads=96, head_dim=128),
        flags={"attention_backend": "flashinfer"},
    )
    passing = case(
        architecture="Glm4MoeForCausalLM",
        tp=4,
        nodes=4,
        facts=Facts(q_heads=96, head_dim=128),
        flags={"attention_backend": "flashinfer"},
    )

    def check(self, view: LaunchView) -> Hits:
        heads, size = view.facts.q_heads, view.facts.head_dim
        if view.attention != "flashinfer" or not heads or not size:
            return
        own = heads // view.tp
        if own * (size // 8) > 1024:
            message = f"{own} query heads of {size} on one rank need {own * (size // 8)} threads to merge"
            yield Hit(message, "attention_backend")
