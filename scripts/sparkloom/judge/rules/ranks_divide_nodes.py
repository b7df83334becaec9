"""Ranks must spread evenly over the nodes; a Spark has one GPU."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class RanksDivideNodes(Rule):
    id = "ranks-divide-nodes"
    severity = "error"
    scope = Scope(engine="*", nodes=">1")
    why = "the engine asserts (tp x pp) % nnodes == 0, and with one GPU per Spark all ranks and nodes must be equal"
    fix = "parallel: {nodes: tp x pp x dp}"
    evidence = (code("0.5.10 to 0.5.23"),)
    log_pattern = r"tp_size must be divisible by number of nodes"
    failing = case(nodes=4, tp=3)
    passing = case(nodes=4, tp=4)

    def check(self, view: LaunchView) -> Hits:
        ranks = view.tp * view.pp * view.dp
        if ranks != view.nodes:
            copies = f" x dp {view.dp}" if view.dp > 1 else ""
            yield Hit(f"tp {view.tp} x pp {view.pp}{copies} = {ranks} ranks on {view.nodes} nodes", "parallel")
