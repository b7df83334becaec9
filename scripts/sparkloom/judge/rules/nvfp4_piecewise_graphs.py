"""Piecewise CUDA graphs trace into fp4_quantize, which torch.compile cannot fake before FlashInfer 0.6.14."""

from sparkloom.inputs.families import MULTIMODAL
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import NAMED, code, rows


class Nvfp4PiecewiseGraphs(Rule):
    id = "nvfp4-piecewise-graphs"
    severity = "error"
    scope = Scope(
        engine="sglang",
        releases=">=0.5.10rc0,<0.5.12",
        architecture="(?!NemotronH|Qwen3Next|GlmMoeDsa|Deepseek)",
        packing="modelopt",
        pp="==1",
    )
    why = (
        "piecewise capture runs torch.compile over the forward pass, and fp4_quantize has no fake-tensor "
        "form there. The engine itself turns piecewise graphs off for multimodal models, pipelines, "
        "speculation and a few architectures: that is why one post calls 'piecewise off' mandatory for "
        "all NVFP4 while its own Qwen3.5 winner has it 'on' (it never was)"
    )
    fix = "disable_piecewise_cuda_graph: true"
    evidence = (
        NAMED["tuning-post"],
        rows("GLM-4.7 EP=1 and Qwen3-235B EP=4 on 0.5.10: every run crashes; MiniMax-M2.7 runs on 0.5.12.post1"),
        code("the list of automatic exceptions, 0.5.10"),
    )
    log_pattern = r"Cannot access data pointer of .*FakeTensor|fp4_quantize.*(fake|meta)"
    failing = case(
        release="0.5.10",
        architecture="Glm4MoeForCausalLM",
        packing="modelopt",
        flags={"disable_piecewise_cuda_graph": False},
    )
    passing = case(
        release="0.5.10",
        architecture="Glm4MoeForCausalLM",
        packing="modelopt",
        flags={"disable_piecewise_cuda_graph": True},
    )

    def check(self, view: LaunchView) -> Hits:
        automatic = view.facts.multimodal is not False and MULTIMODAL.search(view.architecture) is not None
        if (
            not automatic
            and not view.facts.multimodal
            and not view.eager
            and not view.speculates
            and view.off("disable_piecewise_cuda_graph")
        ):
            yield Hit("piecewise CUDA graphs are on with NVFP4 weights", "disable_piecewise_cuda_graph")
