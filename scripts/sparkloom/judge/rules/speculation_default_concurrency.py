"""With speculation and no limit, SGLang admits 48 requests, whatever was captured."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import TUNING_POST, code


class SpeculationDefaultConcurrency(Rule):
    id = "speculation-default-concurrency"
    severity = "warning"
    scope = Scope(engine="sglang")
    why = (
        "48 requests in batches beyond cuda_graph_max_bs run without graphs: slow at best, garbage where "
        "eager mode is broken"
    )
    fix = "max_running_requests: at most cuda_graph_max_bs"
    evidence = (code("speculation without max_running_requests sets 48"), TUNING_POST)
    failing = case(flags={"speculative_algorithm": "NEXTN", "cuda_graph_max_bs": 8})
    passing = case(flags={"speculative_algorithm": "NEXTN", "cuda_graph_max_bs": 8, "max_running_requests": 8})

    def check(self, view: LaunchView) -> Hits:
        graphs = view.number("cuda_graph_max_bs")
        if (
            not view.partial
            and view.speculates
            and graphs is not None
            and graphs < 48
            and view.flag("max_running_requests") is None
        ):
            yield Hit(
                f"speculation with cuda_graph_max_bs {graphs:.0f} and no max_running_requests", "max_running_requests"
            )
