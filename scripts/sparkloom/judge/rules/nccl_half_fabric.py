"""One rail is half of a Spark's fabric."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import ULTRA_POST


class NcclHalfFabric(Rule):
    id = "nccl-half-fabric"
    severity = "info"
    scope = Scope(engine="*", nodes=">1")
    why = (
        "each port is two PCIe x4 halves with a netdev each: 9.8 GB/s over one, 22 to 24 over both. "
        "Decode hardly gains, prefill does"
    )
    fix = (
        "inventory fabric.rails: both halves, on two subnets (NVIDIA's guide says twins must not share "
        "one, its own script does)"
    )
    evidence = (ULTRA_POST, Source("NVIDIA's Spark cluster script passes at 21.9 GB/s", "2026"))
    failing = case(nodes=4, tp=4, env={"NCCL_IB_HCA": "=rocep1s0f0v1"})
    passing = case(nodes=4, tp=4, env={"NCCL_IB_HCA": "=rocep1s0f0v1,roceP2p1s0f0v1"})

    def check(self, view: LaunchView) -> Hits:
        value = view.env.get("NCCL_IB_HCA", "")
        if value and "," not in value:
            yield Hit(f"NCCL_IB_HCA names one device: {value}", "env.NCCL_IB_HCA")
