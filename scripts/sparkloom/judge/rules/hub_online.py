"""A pod that may ask the hub loads what was never verified: engines fetch by themselves what they do not find."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code

SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")


class HubOnline(Rule):
    id = "hub-online"
    severity = "error"
    scope = Scope(engine="*")
    why = "the engine may then load other weights than playbooks/models.yml verified, different ones on each node"
    fix = "remove it: pods are offline here, and playbooks/models.yml brings what they need"
    evidence = (code("huggingface_hub reads 1, ON, YES and TRUE as offline, and all else as online"),)
    predicts_failure = False
    failing = case(env={"HF_HUB_OFFLINE": "0"})
    passing = case(env={"HF_HUB_OFFLINE": "1"})

    def check(self, view: LaunchView) -> Hits:
        for name in SWITCHES:
            said = view.env.get(name)
            if said is not None and not view.partial and said.upper() not in ("1", "ON", "YES", "TRUE"):
                yield Hit(f"{name} is '{said}'", f"env.{name}")
