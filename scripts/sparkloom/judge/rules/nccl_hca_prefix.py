"""NCCL_IB_HCA without '=' matches every device that begins so."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class NcclHcaPrefix(Rule):
    id = "nccl-hca-prefix"
    severity = "warning"
    scope = Scope(engine="*", nodes=">1")
    why = (
        "a privileged pod sees all functions of the card: rocep1s0f0v1 also matches v10 to v15, and a "
        "port without a peer stalls the start"
    )
    fix = "env NCCL_IB_HCA: =device,device (one of each rail)"
    evidence = (Source("NCCL's documentation of NCCL_IB_HCA", "2026"),)
    failing = case(nodes=4, tp=4, env={"NCCL_IB_HCA": "rocep1s0f0v1"})
    passing = case(nodes=4, tp=4, env={"NCCL_IB_HCA": "=rocep1s0f0v1,roceP2p1s0f0v1"})

    def check(self, view: LaunchView) -> Hits:
        value = view.env.get("NCCL_IB_HCA", "=")
        if not value.startswith(("=", "^=")):
            yield Hit(f"NCCL_IB_HCA is '{value}'", "env.NCCL_IB_HCA")
