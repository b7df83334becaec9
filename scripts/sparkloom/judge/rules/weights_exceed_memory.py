"""Weights that are larger than a Spark's free memory fit at no mem_fraction_static."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import rows


class WeightsExceedMemory(Rule):
    id = "weights-exceed-memory"
    severity = "error"
    scope = Scope(engine="*")
    why = "about 100 GiB are free before the load (121.6 GiB of unified memory less host, engine and page cache)"
    fix = "parallel: more nodes, or a smaller checkpoint"
    evidence = (
        rows(
            "GLM-5 NVFP4 on four nodes: out of memory while the layers are built, at any mem_fraction_static "
            "and in a pipeline too"
        ),
    )
    log_pattern = r"OutOfMemoryError.*|NV_ERR_NO_MEMORY"
    failing = case(tp=4, facts=Facts(weights_gib=(("tp4-ep1", 108.0),)))
    passing = case(tp=4, facts=Facts(weights_gib=(("tp4-ep1", 83.7),)))

    def check(self, view: LaunchView) -> Hits:
        weights = view.facts.weights_gib_per_rank(view.tp, view.pp, view.ep)
        free = view.platform.free_gib
        if weights is not None and weights >= free:
            yield Hit(f"weights of {weights:.0f} GiB per rank do not fit in {free:.1f} GiB", "parallel")
