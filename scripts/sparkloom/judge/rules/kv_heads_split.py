"""Tensor parallelism must divide the attention heads, and the KV heads or be divided by them."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class KvHeadsSplit(Rule):
    id = "kv-heads-split"
    severity = "error"
    scope = Scope(engine="*", tp=">1")
    why = (
        "each rank holds several whole KV heads, or one replicated evenly; the engine refuses anything else "
        "at load. Three nodes rarely divide the heads; a pipeline works (tp 1, pp 3)"
    )
    fix = "parallel.tp: a divisor of the KV heads (or a multiple of them)"
    evidence = (rows("MiniMax-M2.5 (8 KV heads) with TP=3: assertion at startup; PP=3 runs"),)
    log_pattern = r"total_num_kv_heads % (self\.)?tp_size|Total number of attention heads .* must be divisible"
    failing = case(tp=3, nodes=3, facts=Facts(kv_heads=8))
    passing = case(tp=4, nodes=4, facts=Facts(kv_heads=2))

    def check(self, view: LaunchView) -> Hits:
        heads, queries = view.facts.kv_heads, view.facts.q_heads
        if queries and queries % view.tp:
            yield Hit(f"{queries} attention heads cannot be split over tp {view.tp}", "parallel")
        elif heads and (heads % view.tp if heads >= view.tp else view.tp % heads):
            yield Hit(f"{heads} KV heads cannot be split over tp {view.tp}", "parallel")
