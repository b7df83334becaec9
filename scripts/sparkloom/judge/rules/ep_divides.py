"""Expert parallelism must divide the tensor-parallel group and the experts; the triton runner does not check."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class EpDivides(Rule):
    id = "ep-divides"
    severity = "error"
    scope = Scope(engine="*", ep=">1")
    why = "with the triton runner the engine accepts ep 3 at tp 4 and leaves experts without a rank"
    fix = "parallel.ep: a divisor of parallel.tp (x dp) and of the number of experts"
    evidence = (code("ep 2 and 3 at tp 4 accepted at the arguments, 0.5.10 to 0.5.23"),)
    failing = case(tp=4, ep=3)
    passing = case(tp=4, ep=2, facts=Facts(experts=512))

    def check(self, view: LaunchView) -> Hits:
        if view.tp * view.dp % view.ep:
            copies = f" x dp {view.dp}" if view.dp > 1 else ""
            yield Hit(f"ep {view.ep} does not divide tp {view.tp}{copies}", "parallel")
        elif view.facts.experts and view.facts.experts % view.ep:
            yield Hit(f"ep {view.ep} does not divide the {view.facts.experts} experts", "parallel")
