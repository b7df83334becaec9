"""What a rank may do on its node.

Privileged only where RDMA needs it: host-device moves the network interface into the pod but not its
/dev/infiniband devices, and without them NCCL has no fabric (forum post on RoCE in K3s, 2026-04). In
`device-plugin` mode a plugin hands those devices out and IPC_LOCK is enough to pin memory.
"""

from __future__ import annotations

from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.resolve import Launch


def context(launch: Launch, cluster: Cluster) -> dict[str, Any]:
    if launch.fabric and cluster.security_mode == "privileged":
        return {"privileged": True}
    return {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["IPC_LOCK"], "drop": ["NET_RAW"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def devices(launch: Launch, cluster: Cluster) -> dict[str, str]:
    """Extended resources of one rank: its GPU, and the rails' RDMA devices where a plugin hands them out."""
    limits = {"nvidia.com/gpu": "1"}
    if launch.fabric and cluster.security_mode == "device-plugin":
        limits[cluster.rdma_resource] = "1"
    return limits
