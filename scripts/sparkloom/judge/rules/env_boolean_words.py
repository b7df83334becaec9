"""SGLang reads true, 1, yes, y, false, 0, no and n; any other word keeps the default."""

import re

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class EnvBooleanWords(Rule):
    id = "env-boolean-words"
    severity = "error"
    scope = Scope(engine="sglang")
    why = "the engine does not know the word and only warns, so 'off' leaves a switch on if its default is on"
    fix = '"1" or "0"'
    evidence = (code("0.5.10 to 0.5.23"),)
    log_pattern = r"Invalid value for SGLANG_\w+"
    failing = case(env={"SGLANG_ENABLE_JIT_DEEPGEMM": "off"})
    passing = case(env={"SGLANG_ENABLE_JIT_DEEPGEMM": "false"})

    def check(self, view: LaunchView) -> Hits:
        for name, value in view.env.items():
            switch = re.match(r"SGLANG_(ENABLE|DISABLE|USE|ALLOW|SKIP)_", name)
            if switch and value.lower() not in ("true", "1", "yes", "y", "false", "0", "no", "n"):
                yield Hit(f"{name} is '{value}'", f"env.{name}")
