"""vLLM's data parallelism over Sparks: copies are launch.parallel.dp, of a mixture of experts, behind one API."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code
from sparkloom.launch.view import ModelView

OWN_API = ("data_parallel_external_lb", "data_parallel_hybrid_lb")


class VLLMCopies(Rule):
    id = "vllm-copies"
    severity = "error"
    scope = Scope(engine="vllm")
    why = (
        "a Spark has one GPU, so a copy takes one or more Sparks, placed by parallel.dp. Copies of a dense "
        "model share nothing and do not use the rails; with an external balancer each copy has an API that "
        "nothing here reaches"
    )
    fix = "parallel.dp for the copies of a mixture of experts; a dense model as one service for each node, or with tp"
    evidence = (code("EngineArgs.create_engine_config and ParallelConfig of vLLM 0.19, 0.32: copies follow --nnodes"),)
    failing = case(engine="vllm", release="0.32.0", nodes=2, tp=2, flags={"data_parallel_size": 2})
    passing = case(engine="vllm", release="0.32.0", nodes=2, tp=1, dp=2, flags={"data_parallel_size": 2})

    def check(self, view: LaunchView) -> Hits:
        size = view.number("data_parallel_size")
        if size is not None and size != view.dp:
            yield Hit(f"data_parallel_size is {size:g} beside parallel.dp {view.dp}", "data_parallel_size")
        elif view.dp > 1 and isinstance(view, ModelView) and not view.model.experts:
            yield Hit(f"parallel.dp {view.dp} of a dense model: its copies share nothing", "parallel")
        for flag in OWN_API:
            if view.on(flag):
                yield Hit(f"{flag} gives each copy an API of its own, and only rank 0 is reached", flag)
