"""On hybrids the state pool, not KV, limits how many requests run."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import NAMED, rows


class MambaPoolLimitsConcurrency(Rule):
    id = "mamba-pool-limits-concurrency"
    severity = "info"
    scope = Scope(engine="sglang", architecture="NemotronH|Qwen3_5|Qwen3Next")
    why = (
        "each running request takes three slots (five with speculation); the engine lowers "
        "max_running_requests to fit and says so once"
    )
    fix = "max_mamba_cache_size: 3 x (5 x with speculation) the requests you want"
    evidence = (NAMED["ultra-post"], NAMED["super-post"], rows("Ultra: 48 slots, 16 running"))
    failing = case(architecture="NemotronHForCausalLM", flags={"max_mamba_cache_size": 48, "max_running_requests": 32})
    passing = case(architecture="NemotronHForCausalLM", flags={"max_mamba_cache_size": 96, "max_running_requests": 32})

    def check(self, view: LaunchView) -> Hits:
        slots, running = view.number("max_mamba_cache_size"), view.number("max_running_requests")
        per_request = 5 if view.speculates else 3
        if slots and running and slots // per_request < running:
            yield Hit(
                f"{slots:.0f} slots carry {slots // per_request:.0f} requests, not {running:.0f}",
                "max_mamba_cache_size",
            )
