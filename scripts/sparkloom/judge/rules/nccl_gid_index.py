"""The GID index differs by node and drifts; an empty one means link-local."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.judge.rules.sources import TUNING_POST


class NcclGidIndex(Rule):
    id = "nccl-gid-index"
    severity = "error"
    scope = Scope(engine="*")
    why = (
        "NCCL finds the RoCEv2 IPv4 entry of each device itself when the variable is unset. An empty text"
        " is read as 0, which is link-local: queue pairs fail with 'Network is unreachable'. A pinned "
        "number was right on one kit, wrong on its neighbour, and changed within half an hour"
    )
    fix = "leave NCCL_IB_GID_INDEX out; give every VF an IPv4 address on the host and in the pod"
    evidence = (TUNING_POST, Source("nccl issues 1573 and 1587, several field reports", "2026"))
    log_pattern = r"ibv_modify_qp failed"
    failing = case(nodes=4, tp=4, env={"NCCL_IB_GID_INDEX": ""})
    passing = case(nodes=4, tp=4)

    def check(self, view: LaunchView) -> Hits:
        if "NCCL_IB_GID_INDEX" in view.env and view.env["NCCL_IB_GID_INDEX"] in ("", "-1", "0"):
            yield Hit(f"NCCL_IB_GID_INDEX is '{view.env['NCCL_IB_GID_INDEX']}'", "env.NCCL_IB_GID_INDEX")
