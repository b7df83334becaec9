"""MTP of NemotronH on releases that load its draft without embedding and head."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import SUPER_POST


class NemotronhMtpAcceptsNothing(Rule):
    id = "nemotronh-mtp-accepts-nothing"
    severity = "warning"
    scope = Scope(
        engine="sglang", releases="<0.5.13", architecture="NemotronH", unless_carries=("sglang#21138", "sglang#27998")
    )
    why = (
        "the loader filters the draft's head and embedding: it boots, accept length stays at 1.00 and "
        "each step costs more"
    )
    fix = "an image whose engine carries the loader fix (engine.carries: [sglang#21138]), or no speculation"
    evidence = (SUPER_POST, Source("sglang issue 21138", "2026"))
    failing = case(
        release="0.5.12",
        architecture="NemotronHForCausalLM",
        flags={"speculative_algorithm": "EAGLE", "disable_radix_cache": True},
    )
    passing = case(release="0.5.12", architecture="NemotronHForCausalLM")

    def check(self, view: LaunchView) -> Hits:
        if view.speculates:
            yield Hit(f"speculation on {view.architecture}, release {view.release}", "speculative_algorithm")
