"""Secrets in a profile end in manifests, logs and shell histories."""

import re

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import NAMED


class TokenInEnv(Rule):
    id = "token-in-env"
    severity = "error"
    predicts_failure = False
    scope = Scope(engine="*")
    why = (
        "a profile is a file in a repository; weights are fetched before the start, and the engine runs "
        "offline without any token"
    )
    fix = "remove it from env; the model store reads the token from its own Secret"
    evidence = (NAMED["guide"],)
    failing = case(env={"HF_TOKEN": "hf_x"})
    passing = case(env={"HF_HUB_OFFLINE": "1"})

    def check(self, view: LaunchView) -> Hits:
        for name, value in view.env.items():
            if value and re.search(r"(^|_)(TOKEN|API_KEY|PASSWORD|SECRET)$", name):
                yield Hit(f"{name} holds a secret in plain text", f"env.{name}")
        if isinstance(view.flag("api_key"), str):
            yield Hit("api_key stands in the profile", "api_key")
