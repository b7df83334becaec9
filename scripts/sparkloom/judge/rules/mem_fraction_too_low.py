"""mem_fraction_static is what weights, KV and state pools share: too low leaves a pool below zero."""

from sparkloom.inputs.families import Facts
from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import NAMED, rows


class MemFractionTooLow(Rule):
    id = "mem-fraction-too-low"
    severity = "error"
    scope = Scope(engine="sglang")
    why = (
        "the KV pool is mem_fraction_static x free memory before the load, less the weights and the mamba"
        " pool; below zero the server stops after the whole load and says 'increase'. The name misleads: "
        "raise it, do not lower it"
    )
    fix = "mem_fraction_static: higher (Nemotron Ultra at EP=4 needs 0.88), or more ranks"
    evidence = (
        NAMED["ultra-post"],
        rows(
            "Ultra EP=4: 0.85 refused, 0.88, 0.90 and 0.92 serve; GLM-4.7 FP8 on four nodes at 0.60: every "
            "run ends after the load"
        ),
    )
    log_pattern = r"Not enough memory\. Please try to increase --mem-fraction-static"
    failing = case(
        tp=4,
        ep=4,
        facts=Facts(weights_gib=(("tp4-ep4", 83.7),), mamba_slot_gib=0.38),
        flags={"mem_fraction_static": 0.85, "max_mamba_cache_size": 48},
    )
    passing = case(
        tp=4,
        ep=4,
        facts=Facts(weights_gib=(("tp4-ep4", 83.7),), mamba_slot_gib=0.38),
        flags={"mem_fraction_static": 0.88, "max_mamba_cache_size": 48},
    )

    def check(self, view: LaunchView) -> Hits:
        fraction, weights = (
            view.number("mem_fraction_static"),
            view.facts.weights_gib_per_rank(view.tp, view.pp, view.ep),
        )
        if fraction is None or weights is None or weights >= view.platform.free_gib:
            return
        mamba = (view.facts.mamba_slot_gib or 0.0) * (view.number("max_mamba_cache_size") or 0.0) / view.tp
        need = (weights + mamba) / view.platform.free_gib
        if fraction <= need:
            wanted = f"weights of {weights:.1f} GiB and state of {mamba:.1f} GiB per rank alone need {need:.3f}"
            yield Hit(f"mem_fraction_static is {fraction:g}, but {wanted}", "mem_fraction_static")
