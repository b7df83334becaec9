"""Are this rank's rails as planned? Interface, address, MTU, carrier, RDMA device, GID; each fault with its cure."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

from sparkloom.onnode import interfaces
from sparkloom.onnode.host.read import text
from sparkloom.onnode.rank.plan import GroupPlan, Rail

RENEW = "delete this pod so that it is made again: a pod gets its rails when it is made"
GONE = "a port that left the PCI bus (cable out?) took it, and its node makes this pod again when the port is back"
IPC_LOCK = 1 << 14  # linux/capability.h
HELD = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.M)
FABRIC = "run playbooks/fabric.yml, which says what this node lacks"


def faults(plan: GroupPlan, rank: int) -> list[str]:
    """One sentence per fault, none when both rails stand."""
    here = interfaces.addresses()
    return [text for rail in plan.member(rank).rails for text in _rail(plan, rail, here)]


def unpinnable(plan: GroupPlan) -> list[str]:
    """Why RDMA cannot pin what it registers: without the right to, the engine says so an hour later, in ibverbs' words.

    A limit holds for whoever lacks IPC_LOCK; a capability that is not effective counts for nothing.
    """
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if not plan.rdma or limit == resource.RLIM_INFINITY:
        return []
    held = HELD.search((Path(plan.proc) / "self/status").read_text())
    if held and int(held[1], 16) & IPC_LOCK:
        return []
    return [
        f"this pod may pin {limit >> 10} KiB, and RDMA registers gigabytes: its process has no IPC_LOCK, and its "
        "runtime limits memlock; run as root in the pod, or LimitMEMLOCK=infinity for the node's K3s or containerd"
    ]


def mend(plan: GroupPlan, rank: int) -> list[str]:
    """What this rank may put right itself: after a boot a pod can be faster than the node, whose MTU it then misses.

    The node did it when it gave the rail, if it could then. Without the right to do it the fault stands and is named;
    only who answers for an address is left as it is then, since most first answers are right.
    """
    here, done = interfaces.addresses(), []
    for rail in plan.member(rank).rails:
        _own_address_only(Path(plan.proc) / "sys/net/ipv4/conf" / rail.interface)
        if rail.interface in here and (size := interfaces.mtu(rail.interface)) < rail.mtu:
            refused = interfaces.set_mtu(rail.interface, rail.mtu)
            if not refused:
                done.append(f"rail {rail.name}: {rail.interface} came with MTU {size}; set to {rail.mtu} here")
    return done


def _own_address_only(settings: Path) -> None:
    for name, value in interfaces.OWN_ADDRESS_ONLY.items():
        if (settings / name).is_file() and text(settings / name) != value:
            with contextlib.suppress(OSError):  # a pod that is not privileged
                (settings / name).write_text(value)


def _rail(plan: GroupPlan, rail: Rail, here: dict[str, list[tuple[str, int]]]) -> Iterator[str]:
    name = f"rail {rail.name}: {rail.interface}"
    if rail.interface not in here:
        yield f"{name} is not in this pod (here: {', '.join(sorted(here))}): {GONE}; else is Multus up? {RENEW}"
        return
    wanted, given = (rail.address, rail.prefix), here[rail.interface]
    if wanted not in given:
        have = ", ".join(f"{a}/{p}" for a, p in given) or "no IPv4 address"
        yield f"{name} has {have}, planned is {rail.address}/{rail.prefix}; {RENEW}"
    size = interfaces.mtu(rail.interface)
    if size < rail.mtu:
        yield f"{name} has MTU {size}, planned is {rail.mtu} (fabric.mtu in fabric.yml); {FABRIC}, then delete this pod"
    is_up, carrier = interfaces.up(rail.interface)
    if not is_up:
        yield f"{name} is down; {RENEW}"
    elif not carrier:
        yield f"{name} has no carrier: cable, or the switch's port"
    if plan.rdma:
        yield from _rdma(plan, rail)


def _rdma(plan: GroupPlan, rail: Rail) -> Iterator[str]:
    name, device = f"rail {rail.name}: RDMA device {rail.hca}", Path(plan.sys) / "infiniband" / rail.hca
    if not device.is_dir():
        there = ", ".join(sorted(p.name for p in device.parent.iterdir())) if device.parent.is_dir() else "none"
        yield f"{name} is not there (found: {there}); is the VF's driver loaded on the node? {FABRIC}"
        return
    state = text(device / "ports/1/state")
    if "ACTIVE" not in state:
        yield f"{name}: its port is {state or 'without state'}, expected ACTIVE; cable, or the switch's port"
    if file := _missing_file(plan, rail):
        yield (
            f"{name}: {file} is not in this pod, so NCCL cannot open it; "
            "cluster.security_mode in cluster.yml says who hands it out (privileged, or a device plugin)"
        )
    if not any(_is_gid(device / "ports/1", entry.name, rail.address) for entry in device.glob("ports/1/gids/*")):
        yield (
            f"{name} has no RoCE v2 GID of {rail.address}: the VF has no IPv4 address on the node; "
            "run playbooks/fabric.yml, then delete this pod"
        )


def _is_gid(port: Path, index: str, address: str) -> bool:
    """The table is sparse, and what an index means differs from node to node: only contents count."""
    gid = text(port / "gids" / index).replace(":", "")
    mapped = ("0" * 20 + "ffff" + socket.inet_aton(address).hex()) == gid
    return mapped and text(port / "gid_attrs/types" / index) == "RoCE v2"


def _missing_file(plan: GroupPlan, rail: Rail) -> str:
    """The verbs file of a device, when the kernel names one and this pod has it not."""
    folder = Path(plan.sys) / "infiniband_verbs"
    for entry in folder.glob("uverbs*"):
        if text(entry / "ibdev") == rail.hca:
            file = Path("/dev/infiniband") / entry.name
            return "" if file.exists() else str(file)
    return ""
