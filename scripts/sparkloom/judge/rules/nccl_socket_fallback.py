"""Without NCCL_NET=IB a missing fabric is a silent fall back to sockets."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import TUNING_POST


class NcclSocketFallback(Rule):
    id = "nccl-socket-fallback"
    severity = "error"
    predicts_failure = False  # half the speed, but it serves
    scope = Scope(engine="*", nodes=">1")
    why = (
        "when no RDMA device opens (pod without privileges or device plugin, VF without an address) NCCL "
        "takes sockets and says so in one INFO line: 2 GB/s instead of 22, CPU-bound, half the tokens. "
        "With NCCL_NET=IB the start fails instead"
    )
    fix = "env NCCL_NET: IB (the default here); give the pod /dev/infiniband and each VF its IPv4 address"
    evidence = (TUNING_POST, Source("nccl issues 451 and 2428, vllm issue 42075", "2026"))
    log_pattern = r"NET/IB : No device found|Using network Socket|via NET/Socket"
    failing = case(nodes=4, tp=4, env={"NCCL_NET": "Socket"})
    passing = case(nodes=4, tp=4, env={"NCCL_NET": "IB"})

    def check(self, view: LaunchView) -> Hits:
        if view.engine != "llamacpp" and not view.partial and view.env.get("NCCL_NET") != "IB":
            yield Hit(f"NCCL_NET is '{view.env.get('NCCL_NET', 'not set')}' on {view.nodes} nodes", "env.NCCL_NET")
