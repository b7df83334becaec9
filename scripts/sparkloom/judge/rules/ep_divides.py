"""Expert parallelism must divide the tensor-parallel group and the experts; the triton runner does not check."""

from __future__ import annotations

from collections.abc import Iterable

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Context, Hit, Rule, Scope
from sparkloom.judge.rules.sources import code


class EpDivides(Rule):
    id = "ep-divides"
    severity = "error"
    scope = Scope(engine="*", ep=">1")
    why = "ep 3 at tp 4 passes the arguments with the triton runner and leaves experts without a rank"
    fix = "parallel.ep: a divisor of parallel.tp and of the number of experts"
    evidence = (code("ep 2 and 3 at tp 4 accepted at the arguments, 0.5.10 to 0.5.23"),)
    failing = Context(tp=4, ep=3)
    passing = Context(tp=4, ep=2, facts=Facts(experts=512))

    def check(self, ctx: Context) -> Iterable[Hit]:
        if ctx.tp % ctx.ep:
            yield Hit(f"ep {ctx.ep} does not divide tp {ctx.tp}", "parallel")
        elif ctx.facts.experts and ctx.facts.experts % ctx.ep:
            yield Hit(f"ep {ctx.ep} does not divide the {ctx.facts.experts} experts", "parallel")
