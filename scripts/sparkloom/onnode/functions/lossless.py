"""Lossless settings of a rail's port, where the plan asks for them: DSCP trusted, pause for one priority, ECN.

The kernel's own interface (`dcb` of iproute2) sets them; with NVIDIA's driver package there are files for trust and
ECN too. What a machine does not offer is a note, never a failure: the switch may do without. Not kept by the card, so
set at every boot. Both ends and the switch have to agree on the priority.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparkloom.onnode.functions import common
from sparkloom.onnode.functions.common import ask, text

notes: list[str] = []
ECN = ("roce_np", "roce_rp")


def on(value: object) -> bool:
    return value in (True, "on", 1)


def shown(part: str, port: str, what: str) -> dict[str, Any] | None:
    """What `dcb` says of one port."""
    answer = ask("dcb", "-j", part, "show", "dev", port, what)
    if isinstance(answer, list):
        answer = answer[0] if answer else {}
    return None if answer is None else dict(answer)


def pause(port: str) -> list[bool] | None:
    """Per priority, whether it is paused rather than dropped; None where the driver or the program does not say."""
    held = (shown("pfc", port, "prio-pfc") or {}).get("prio-pfc")
    return [on(value) for value in held] if isinstance(held, list) else None


def set_pause(port: str, wanted: list[bool]) -> None:
    words = [f"{priority}:{'on' if value else 'off'}" for priority, value in enumerate(wanted)]
    common.call("dcb", "pfc", "set", "dev", port, "prio-pfc", *words)


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


def as_planned(plan: dict[str, Any], dry: bool) -> list[str]:
    wanted, port = plan.get("lossless"), plan["pf"]
    if not wanted:
        return []
    priority, dscp, changes = wanted["priority"], wanted["dscp"], []
    held = pause(port)
    if held is None:
        notes.append(f"{port}: its driver offers no pause per priority (dcb pfc show), so it stays as it is")
    elif not held[priority]:
        changes.append(f"{port}: pause for priority {priority}")
        if not dry:
            common.remember(port, {"pause": held})
            set_pause(port, [n == priority for n in range(len(held))])
    known = trusted(port, dscp, priority)
    if known is None:
        notes.append(f"{port}: its driver takes no DSCP (dcb app show), so it trusts what it did")
    elif not known:
        changes.append(f"{port}: DSCP {dscp} leads to priority {priority}")
        if not dry:
            common.remember(port, {"dscp": [dscp, priority]})
            common.call("dcb", "app", "add", "dev", port, "dscp-prio", f"{dscp}:{priority}")
    offered = files(port, priority)
    if not any("ecn" in path.parts for path in offered):
        notes.append(
            f"{port}: no switch for ECN in /sys; without NVIDIA's driver package the firmware's setting counts"
        )
    for path, value in offered.items():
        was = text(path)
        if was != value:
            changes.append(f"{path}: {value}")
            if not dry:
                common.remember(port, {"files": {str(path): was}})
                path.write_text(value + "\n")
    return changes


def as_before(plan: dict[str, Any], dry: bool) -> list[str]:
    was, port = common.remembered().get(plan["pf"], {}), plan["pf"]
    changes = []
    if "pause" in was:
        changes.append(f"{port}: pause as before")
        if not dry:
            set_pause(port, was["pause"])
    if "dscp" in was:
        dscp, priority = was["dscp"]
        changes.append(f"{port}: no rule for DSCP {dscp}, as before")
        if not dry:
            common.call("dcb", "app", "del", "dev", port, "dscp-prio", f"{dscp}:{priority}")
    for path, value in was.get("files", {}).items():
        changes.append(f"{path}: {value}, as before")
        if not dry:
            Path(path).write_text(f"{value}\n")
    return changes
