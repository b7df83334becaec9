"""NCCL 2.30 tries NVLink multicast and hangs in silence."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class NcclNvls(Rule):
    id = "nccl-nvls"
    severity = "warning"
    scope = Scope(engine="*", nodes=">1")
    why = (
        "with 256 and more experts the load hangs without a word in NCCL 2.30.4; there is no NVLink "
        "between Sparks to gain from"
    )
    fix = 'env NCCL_NVLS_ENABLE: "0" (the default here)'
    evidence = (Source("nccl issue 2167", "2026"),)
    log_pattern = r"NVLS.*(hang|multicast.*(fail|not supported))"
    failing = case(nodes=4, tp=4, env={"NCCL_NVLS_ENABLE": "1"})
    passing = case(nodes=4, tp=4, env={"NCCL_NVLS_ENABLE": "0"})

    def check(self, view: LaunchView) -> Hits:
        if view.env.get("NCCL_NVLS_ENABLE", "0") != "0":
            yield Hit(f"NCCL_NVLS_ENABLE is '{view.env['NCCL_NVLS_ENABLE']}'", "env.NCCL_NVLS_ENABLE")
