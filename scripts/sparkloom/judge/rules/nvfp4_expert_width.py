"""NVFP4 expert kernels want each rank's share of an expert in steps of 64."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class Nvfp4ExpertWidth(Rule):
    id = "nvfp4-expert-width"
    severity = "error"
    scope = Scope(engine="sglang", packing="modelopt|compressed-tensors")
    why = (
        "scales come in groups of 16 and tiles of four groups; a gated expert cannot be padded to that, so "
        "the engine refuses it"
    )
    fix = "parallel.ep: equal to parallel.tp (experts stay whole), or fewer ranks"
    evidence = (
        rows("Gemma-4-26B NVFP4 (expert width 704) with TP=4: refused, and 35 more runs of that matrix were not tried"),
    )
    log_pattern = r"[Ii]ntermediate size required padding"
    failing = case(packing="modelopt", tp=4, ep=1, facts=Facts(expert_inter=704))
    passing = case(packing="modelopt", tp=4, ep=4, facts=Facts(expert_inter=704))

    def check(self, view: LaunchView) -> Hits:
        width, share = view.facts.expert_inter, max(1, view.tp // view.ep)
        if width and view.facts.gated is not False and (width % share or (width // share) % 64):
            yield Hit(f"expert width {width} over {share} ranks is {width / share:g}, not a multiple of 64", "parallel")
