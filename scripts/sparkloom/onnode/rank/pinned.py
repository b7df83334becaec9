"""May this pod pin what RDMA registers? Without the right to, the engine says so an hour later, in ibverbs' words."""

from __future__ import annotations

import re
import resource
from pathlib import Path

from sparkloom.onnode.rank.order import Order

IPC_LOCK = 1 << 14  # linux/capability.h
HELD = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.M)


def faults(order: Order) -> list[str]:
    """A limit holds for whoever lacks IPC_LOCK; a capability that is not effective counts for nothing."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if not order.rdma or limit == resource.RLIM_INFINITY:
        return []
    held = HELD.search((Path(order.proc) / "self/status").read_text())
    if held and int(held[1], 16) & IPC_LOCK:
        return []
    return [
        f"this pod may pin {limit >> 10} KiB, and RDMA registers gigabytes: its process has no IPC_LOCK, and its "
        "runtime limits memlock; run as root in the pod, or LimitMEMLOCK=infinity for the node's K3s or containerd"
    ]
