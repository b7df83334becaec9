"""A pinned GID index is a bet on two tables that change."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class NcclGidIndexPinned(Rule):
    id = "nccl-gid-index-pinned"
    severity = "warning"
    scope = Scope(engine="*")
    why = (
        "index 3 is folklore: in pods the table starts at 4, 6 or 8, nodes differ, and entries move when "
        "an address is renewed"
    )
    fix = "leave NCCL_IB_GID_INDEX out"
    evidence = (Source("nccl issues 1573 and 1587, several field reports", "2026"),)
    failing = case(nodes=4, tp=4, env={"NCCL_IB_GID_INDEX": "3"})
    passing = case(nodes=4, tp=4)

    def check(self, view: LaunchView) -> Hits:
        value = view.env.get("NCCL_IB_GID_INDEX", "")
        if value not in ("", "-1", "0"):
            yield Hit(f"NCCL_IB_GID_INDEX is '{value}'", "env.NCCL_IB_GID_INDEX")
