"""Batches beyond the largest captured graph run eagerly."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class BatchBeyondGraphs(Rule):
    id = "batch-beyond-graphs"
    severity = "info"
    scope = Scope(engine="sglang")
    why = (
        "eager decode costs a quarter to a third of the rate at one request (little at eight); the limit"
        " is cheap to raise"
    )
    fix = "cuda_graph_max_bs: max_running_requests"
    evidence = (rows("eager against graphs at n=1: x0.66 to x0.75 on Qwen3.5-397B and GLM-4.7, x0.3 on Qwen3.6-35B"),)
    failing = case(flags={"cuda_graph_max_bs": 8, "max_running_requests": 32})
    passing = case(flags={"cuda_graph_max_bs": 32, "max_running_requests": 32})

    def check(self, view: LaunchView) -> Hits:
        graphs, running = view.number("cuda_graph_max_bs"), view.number("max_running_requests")
        if graphs is not None and running is not None and running > graphs and not view.eager:
            yield Hit(
                f"max_running_requests {running:.0f} is more than cuda_graph_max_bs {graphs:.0f}", "cuda_graph_max_bs"
            )
