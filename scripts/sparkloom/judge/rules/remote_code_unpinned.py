"""trust_remote_code runs the publisher's Python with the engine's rights; without a commit, whatever it is by then."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, case
from sparkloom.judge.rules.sources import code


class RemoteCodeUnpinned(Rule):
    id = "remote-code-unpinned"
    severity = "error"
    scope = Scope(engine="*")
    why = "whoever can change that repository runs code on every node, with the engine's rights and its mounts"
    fix = (
        "model.revision: a commit of its page that somebody has read; or playbooks/models.yml, which locks the commit "
        "that it verifies (group_vars/all/images.yml); or, to let that first one run: model.runs_unpinned_code_of: [ID]"
    )
    evidence = (code("trust_remote_code imports modeling_*.py of the checkpoint"),)
    predicts_failure = False
    failing = case(flags={"trust_remote_code": True}, moving=frozenset({"org/name"}))
    passing = case(flags={"trust_remote_code": True})

    def check(self, view: LaunchView) -> Hits:
        if view.on("trust_remote_code"):
            for name in sorted(view.moving - view.consented):
                yield Hit(f"trust_remote_code, and no commit pins {name}", "trust_remote_code")
