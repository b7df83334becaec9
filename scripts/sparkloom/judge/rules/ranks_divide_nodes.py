"""Ranks must spread evenly over the nodes; a Spark has one GPU."""

from __future__ import annotations

from collections.abc import Iterable

from sparkloom.judge.rules.base import Context, Hit, Rule, Scope
from sparkloom.judge.rules.sources import code


class RanksDivideNodes(Rule):
    id = "ranks-divide-nodes"
    severity = "error"
    scope = Scope(engine="*", nodes=">1")
    why = "the engine asserts (tp x pp) % nnodes == 0, and with one GPU per Spark the two must be equal"
    fix = "parallel: {nodes: tp x pp}"
    evidence = (code("0.5.10 to 0.5.23"),)
    log_pattern = r"tp_size must be divisible by number of nodes"
    failing = Context(nodes=4, tp=3)
    passing = Context(nodes=4, tp=4)

    def check(self, ctx: Context) -> Iterable[Hit]:
        if ctx.tp * ctx.pp != ctx.nodes:
            yield Hit(f"tp {ctx.tp} x pp {ctx.pp} = {ctx.tp * ctx.pp} ranks on {ctx.nodes} nodes", "parallel")
