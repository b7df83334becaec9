"""A profile names the model whose code runs before any commit pins it: that stays in sight until the lock has one."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class RemoteCodeByConsent(Rule):
    id = "remote-code-by-consent"
    severity = "warning"
    scope = Scope(engine="*")
    why = "the profile consents to the code that its publisher has there at the first deploy; from then on it is locked"
    fix = "nothing for a first evening; to choose the code yourself: model.revision, a commit of its page"
    evidence = (code("trust_remote_code imports modeling_*.py of the checkpoint"),)
    predicts_failure = False
    failing = case(flags={"trust_remote_code": True}, moving=frozenset({"org/name"}), consented=frozenset({"org/name"}))
    passing = case(flags={"trust_remote_code": True}, consented=frozenset({"org/name"}))

    def check(self, view: LaunchView) -> Hits:
        if view.on("trust_remote_code"):
            for name in sorted(view.moving & view.consented):
                yield Hit(f"trust_remote_code, and no commit pins {name} yet", "trust_remote_code")
