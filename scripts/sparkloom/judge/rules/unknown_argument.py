"""A flag that the release does not have."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class UnknownArgument(Rule):
    id = "unknown-argument"
    severity = "error"
    scope = Scope(engine="sglang")
    why = (
        "graph and Mamba flags were renamed in 0.5.14 and the old names dropped in 0.5.20; an "
        "abbreviation that was unique in one release is not in the next"
    )
    fix = "write the flag's oldest full name in the profile: the launcher spells it as the release wants"
    evidence = (code("0.5.9 to 0.5.23"),)
    log_pattern = r"error: unrecognized arguments|ambiguous option: --\S+ could match"
    failing = case(flags={"tp": 4})
    passing = case(tp=4)

    def check(self, view: LaunchView) -> Hits:
        for name in ("tp", "pp", "dp_attention", "chat_template_kwargs"):
            if name in view.flags:
                yield Hit(f"{name} is no full flag name", name)
