"""NemotronH's MTP and the prefix cache exclude each other before sglang#27998."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import SUPER_POST, code


class NemotronhSpeculationRadix(Rule):
    id = "nemotronh-speculation-radix"
    severity = "error"
    scope = Scope(
        engine="sglang", releases=">=0.5.10,<0.5.14", architecture="NemotronH", unless_carries=("sglang#27998",)
    )
    why = (
        "up to 0.5.12 extra_buffer is not supported for it and no_buffer refuses speculation with a "
        "prefix cache; even without the cache those releases load the draft wrongly (accept length 1). "
        "The post's image carries the fix beyond its release number"
    )
    fix = (
        "an image of release 0.5.14 or newer, or one that carries sglang#27998; else disable_radix_cache:"
        " true and expect no gain"
    )
    evidence = (
        SUPER_POST,
        code("refused by 0.5.10 to 0.5.13.post1, accepted from 0.5.14"),
        Source("sglang issue 21138", "2026"),
    )
    log_pattern = r"Speculative decoding for NemotronH\w* is not compatible with radix cache"
    failing = case(release="0.5.12", architecture="NemotronHForCausalLM", flags={"speculative_algorithm": "EAGLE"})
    passing = case(
        release="0.5.13",
        architecture="NemotronHForCausalLM",
        carries=frozenset({"sglang#27998"}),
        flags={"speculative_algorithm": "EAGLE"},
    )

    def check(self, view: LaunchView) -> Hits:
        if view.speculates and view.off("disable_radix_cache"):
            yield Hit(
                f"speculation on {view.architecture} with the prefix cache on, release {view.release}",
                "speculative_algorithm",
            )
