"""Lossless settings of a rail's port, where the plan asks for them: DSCP trusted, pause for one priority, ECN.

The kernel's own interface (`dcb` of iproute2) sets them; with NVIDIA's driver package there are files for trust and
ECN too. What a machine does not offer is a note, never a failure: the switch may do without. Not kept by the card, so
set at every boot. Both ends and the switch have to agree on the priority.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from sparkloom.onnode.functions import common
from sparkloom.onnode.functions.common import Steps, ask, remember_first
from sparkloom.onnode.host.read import text

notes: list[str] = []
ECN = ("roce_np", "roce_rp")


def shown(part: str, port: str, what: str) -> dict[str, Any] | None:
    """What `dcb` says of one port."""
    answer = ask("dcb", "-j", part, "show", "dev", port, what)
    if isinstance(answer, list):
        answer = answer[0] if answer else {}
    return None if answer is None else dict(answer)


def pause(port: str) -> list[bool] | None:
    """Per priority, whether it is paused rather than dropped; None where the driver or the program does not say."""
    held = (shown("pfc", port, "prio-pfc") or {}).get("prio-pfc")
    return [value in (True, "on", 1) for value in held] if isinstance(held, list) else None


def set_pause(port: str, wanted: list[bool]) -> None:
    words = [f"{priority}:{'on' if value else 'off'}" for priority, value in enumerate(wanted)]
    common.call("dcb", "pfc", "set", "dev", port, "prio-pfc", *words)


def set_dscp(what: str, port: str, dscp: int, priority: int) -> None:
    common.call("dcb", "app", what, "dev", port, "dscp-prio", f"{dscp}:{priority}")


def trusted(port: str, dscp: int, priority: int) -> bool | None:
    """Whether the DSCP leads to the priority: mlx5 trusts DSCP as soon as one such entry exists."""
    held = shown("app", port, "dscp-prio")
    if held is None:
        return None
    return [dscp, priority] in [list(entry) for entry in held.get("dscp_prio", held.get("dscp-prio", []))]


def files(port: str, priority: int) -> dict[Path, str]:
    """What NVIDIA's driver package offers beyond the kernel's interface."""
    folder = Path("/sys/class/net") / port
    wanted = {folder / "qos/trust": "dscp", **{folder / f"ecn/{way}/enable/{priority}": "1" for way in ECN}}
    return {path: value for path, value in wanted.items() if path.exists()}


def as_planned(plan: dict[str, Any]) -> Steps:
    wanted, port = plan.get("lossless"), plan["pf"]
    if not wanted:
        return
    priority, dscp = wanted["priority"], wanted["dscp"]
    held = pause(port)
    if held is None:
        notes.append(f"{port}: its driver offers no pause per priority (dcb pfc show), so it stays as it is")
    elif not held[priority]:
        only = partial(set_pause, port, [n == priority for n in range(len(held))])
        first = partial(remember_first, port, {"pause": held}, only)
        yield f"{port}: pause for priority {priority}", first
    known = trusted(port, dscp, priority)
    if known is None:
        notes.append(f"{port}: its driver takes no DSCP (dcb app show), so it trusts what it did")
    elif not known:
        add = partial(set_dscp, "add", port, dscp, priority)
        first = partial(remember_first, port, {"dscp": [dscp, priority]}, add)
        yield f"{port}: DSCP {dscp} leads to priority {priority}", first
    offered = files(port, priority)
    if not any("ecn" in path.parts for path in offered):
        notes.append(
            f"{port}: no switch for ECN in /sys; without NVIDIA's driver package the firmware's setting counts"
        )
    for path, value in offered.items():
        if (was := text(path)) != value:
            write = partial(path.write_text, f"{value}\n")
            first = partial(remember_first, port, {"files": {str(path): was}}, write)
            yield f"{path}: {value}", first


def as_before(plan: dict[str, Any]) -> Steps:
    was, port = common.remembered().get(plan["pf"], {}), plan["pf"]
    if "pause" in was:
        yield f"{port}: pause as before", partial(set_pause, port, was["pause"])
    if "dscp" in was:
        dscp, priority = was["dscp"]
        yield f"{port}: no rule for DSCP {dscp}, as before", partial(set_dscp, "del", port, dscp, priority)
    for path, value in was.get("files", {}).items():
        yield f"{path}: {value}, as before", partial(Path(path).write_text, f"{value}\n")
