"""A Service named sglang injects SGLANG_PORT=tcp://..., which the engine reads as its own."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class ServiceLinkPort(Rule):
    id = "service-link-port"
    severity = "error"
    scope = Scope(engine="sglang")
    why = "Kubernetes adds such variables for every Service of the namespace unless enableServiceLinks is false"
    fix = "leave SGLANG_PORT out; pods here run with enableServiceLinks: false"
    evidence = (Source("K3s notes of vroomfondel/dgxarley", "2026"),)
    log_pattern = r"invalid literal for int\(\) with base 10: 'tcp://"
    failing = case(env={"SGLANG_PORT": "tcp://10.43.0.7:30000"})
    passing = case()

    def check(self, view: LaunchView) -> Hits:
        if not view.env.get("SGLANG_PORT", "0").isdigit():
            yield Hit(f"SGLANG_PORT is '{view.env['SGLANG_PORT']}'", "env.SGLANG_PORT")
