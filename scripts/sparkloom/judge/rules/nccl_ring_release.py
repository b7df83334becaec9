"""Three ranks in a ring need an NCCL that chooses its port by the peer's subnet."""

import re

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case
from sparkloom.launch.fabric import RING_NCCL

LEAST = tuple(map(int, RING_NCCL.split(".")))
CARRIED = re.compile(r"nccl-(\d+)\.(\d+)\.(\d+)")
ONLY_RINGS = "NCCL_IB_SUBNET_PREFIX_LEN"  # what the launcher sets for three ranks by fabric.ring, and nowhere else
RING = {ONLY_RINGS: "26", "NCCL_IB_SUBNET_AWARE_ROUTING": "1"}


class NcclRingRelease(Rule):
    id = "nccl-ring-release"
    severity = "error"
    scope = Scope(engine="*", nodes=">2")
    why = (
        "each pair has its own cable, and NCCL before 2.30.7 does not check where a port leads (no "
        "NCCL_IB_SUBNET_AWARE_ROUTING), so the start ends with ibv_modify_qp 110. torch 2.11 brings 2.28.9, "
        "lock files of 2.13 name 2.29.7: an image has a newer one only if somebody added it"
    )
    fix = (
        "an image with NCCL 2.30.7 or newer, also where torch loads it from (nvidia-nccl-cu13), and "
        "`engine.carries: [nccl-2.30.7]` in the profile; else a switch, or two Sparks by the cable between them"
    )
    evidence = (
        Source("NCCL's source: net_ib/connect.cc has it in v2.30.7-1 (2026-06-04) and not in v2.30.4-1", "2026"),
        Source("torch.cuda.nccl.version() of 2.11.0+cu130 says 2.28.9; a lock file of 2.13.0 has 2.29.7", "2026-11"),
        Source("NVIDIA's connect-three-sparks builds a branch of NCCL for it", "2026-03"),
    )
    failing = case(nodes=3, tp=1, pp=3, env=RING, carries=frozenset({"nccl-2.30.4"}))
    passing = case(nodes=3, tp=1, pp=3, env=RING, carries=frozenset({"nccl-2.31.2"}))

    def check(self, view: LaunchView) -> Hits:
        if ONLY_RINGS not in view.env:
            return
        told = [tuple(map(int, match.groups())) for name in view.carries if (match := CARRIED.fullmatch(name))]
        if not told:
            yield Hit("three ranks in a ring, and nothing says that the image's NCCL is 2.30.7 or newer", "parallel")
        elif max(told) < LEAST:
            found = ".".join(map(str, max(told)))
            yield Hit(f"three ranks in a ring, and engine.carries says NCCL {found}", "parallel")
