"""Why NCCL did what it did: causes that a person can act on, read from what one process said."""

from __future__ import annotations

import json
import pkgutil
import re

from sparkloom.base.visible import cut
from sparkloom.onnode.nccl.lines import Process

_READ = json.loads(pkgutil.get_data(__package__, "why.json") or b"")
# What NCCL warns about when a run is over, and what to look at. First match wins; the order is from cause to effect.
CAUSES = [(entry["said"], entry["cause"]) for entry in _READ["causes"]]  # of no network at all: `_no_network`
FATAL = re.compile("|".join(_READ["fatal"]))
HARMLESS = re.compile(r"Could not find real path|Unable to open device")
LONGEST = 220  # characters of a line of its log
RESULTS: dict[str, str] = _READ["results"]


def failure(process: Process) -> str | None:
    """Why this process failed, or None when nothing says that it did."""
    fatal = [text for text in process.warnings if FATAL.search(text)] + process.outside
    unfinished = process.started > process.completed
    torn_down = process.destroyed and process.destroyed >= process.completed
    if process.failure is None and not (fatal and not torn_down):
        return _waiting(process) if unfinished and not process.talks() else None
    telling = fatal or [text for text in process.warnings if not HARMLESS.search(text)][-1:]
    text = (telling or [f"a call failed with result {process.failure} ({RESULTS.get(process.failure or '', '?')})"])[0]
    cause = next((hint for pattern, hint in CAUSES if re.search(pattern, text)), "")
    if re.search(r"network \S+ not found|Failed to initialize any NET", text):
        cause = _no_network(process)
    return f"{cut(text, LONGEST)}: {cause}" if cause else cut(text, LONGEST)


def _waiting(process: Process) -> str | None:
    if process.network and (process.links or process.network == "Socket") and process.nodes:
        return None  # the log ends in the middle; what it says so far is judged
    if process.size <= 1 or process.nodes:
        return None
    return (
        f"initialisation of {process.size} ranks began and never ended: a peer did not come "
        "(is every pod up, does the rendezvous address answer?), or the log was cut here"
    )


def _no_network(process: Process) -> str:
    wanted = process.asked.get("NCCL_NET")
    head = f"NCCL_NET={wanted} allows nothing else, and " if wanted else "NCCL was held to one network, and "
    return head + no_device(process)


def no_device(process: Process) -> str:
    """Why no RoCE device was opened."""
    if any("libibverbs" in note for note in process.notes):
        return "the image has no libibverbs"
    refused = [text for text in process.warnings if "Unable to open device" in text]
    if refused:
        said = cut(refused[0], LONGEST)
        return f"{said}: the pod may not open /dev/infiniband (privileged, or an RDMA device plugin)"
    wanted = process.asked.get("NCCL_IB_HCA")
    named = f" that NCCL_IB_HCA={wanted} names" if wanted else ""
    return (
        f"no RoCE device{named} is there: is the pod privileged, is the VF in the pod, is its port active "
        "(`rdma link` inside the pod)?"
    )


def sockets(process: Process) -> str:
    """Why the traffic goes over TCP: 2 GB/s at best."""
    if process.asked.get("NCCL_NET", "").lower() == "socket":
        return "NCCL_NET=Socket asked for TCP"
    if process.asked.get("NCCL_IB_DISABLE") == "1":
        return "NCCL_IB_DISABLE=1 forbids RoCE"
    over = f" over {', '.join(process.sockets)}" if process.sockets else ""
    tried = any("IB" in note or "libibverbs" in note for note in process.notes)
    if not process.links and process.network and not tried and not process.asked.get("NCCL_IB_HCA"):
        return f"TCP{over}: RoCE was not even tried, so NCCL_NET=Socket or NCCL_IB_DISABLE=1 is set somewhere"
    if not process.links:
        return f"TCP{over}, because {no_device(process)}"
    return f"TCP{over}, although {', '.join(process.links)} could be opened: another rank has no RoCE"


def partial(process: Process, used: list[str], rails: int) -> str:
    idle = [name for name in process.links if name not in used]
    head = f"{', '.join(used) or 'no device'} only, {rails} rails were planned"
    if idle:
        return f"{head}: {', '.join(idle)} was opened and no channel uses it (too few channels, or another subnet)"
    wanted = process.asked.get("NCCL_IB_HCA")
    names = wanted.lstrip("^=").split(",") if wanted else []
    if wanted and len(names) < rails:
        return f"{head}: NCCL_IB_HCA={wanted} names no more"
    lost = [name for name in names if name.split(":")[0] not in process.links]
    named = f" ({', '.join(lost)})" if lost else ""
    return f"{head}: the other device{named} is not in the pod, or its port is down"


def silence(process: Process) -> str:
    subsystems = process.asked.get("NCCL_DEBUG_SUBSYS")
    why = f"NCCL_DEBUG_SUBSYS={subsystems} hides it" if subsystems else "too short, or another level than INFO"
    return f"the log names no transport ({why}): use NCCL_DEBUG=INFO with the subsystems INIT,NET,ENV"
