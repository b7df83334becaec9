"""Where eager mode gives garbage, a batch larger than the largest graph is garbage too."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import TUNING_POST


class Nvfp4EpBatchBeyondGraphs(Rule):
    id = "nvfp4-ep-batch-beyond-graphs"
    severity = "error"
    predicts_failure = False  # a benchmark with few requests never leaves the graphs; a busy server does
    scope = Scope(engine="sglang", releases="<0.5.12", packing="modelopt", ep=">1")
    why = (
        "decode steps of more requests than the largest captured batch run eagerly, which is the garbage "
        "regime of this kernel under EP; the engine's default is 48 with speculation"
    )
    fix = "max_running_requests: at most cuda_graph_max_bs (raise both together)"
    evidence = (TUNING_POST,)
    failing = case(
        release="0.5.10",
        packing="modelopt",
        tp=4,
        ep=4,
        flags={"moe_runner_backend": "triton", "cuda_graph_max_bs": 8, "max_running_requests": 32},
    )
    passing = case(
        release="0.5.10",
        packing="modelopt",
        tp=4,
        ep=4,
        flags={"moe_runner_backend": "triton", "cuda_graph_max_bs": 8, "max_running_requests": 8},
    )

    def check(self, view: LaunchView) -> Hits:
        graphs, running = view.number("cuda_graph_max_bs"), view.number("max_running_requests")
        if not view.nvfp4 or view.moe_runner not in ("triton", "cutlass") or graphs is None:
            return
        if running is None and not view.partial:
            yield Hit(f"cuda_graph_max_bs is {graphs:.0f} and max_running_requests is not set", "max_running_requests")
        elif running is not None and running > graphs:
            yield Hit(
                f"max_running_requests {running:.0f} is more than cuda_graph_max_bs {graphs:.0f}",
                "max_running_requests",
            )
