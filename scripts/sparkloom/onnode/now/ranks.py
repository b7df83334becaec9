"""A rank in a line: its pod, its supervisor's own words, why it waits; also one that has no pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sparkloom.onnode.now import why
from sparkloom.onnode.now.labels import CONFIG_HASH
from sparkloom.onnode.now.pods import State

TOLD = ("phase", "text", "cause", "epoch", "transport", "serving", "rails", "read")
Rank = dict[str, Any]


def row(pod: Any, state: State, told: Mapping[str, Any] | None, waits: str) -> Rank:
    """`told`: what its supervisor says of itself; `waits`: why its pod waits, where it does."""
    seen = asdict(state)
    shown = {key: seen[key] for key in ("rank", "node", "pod", "ready", "restarts")}
    shown["config_hash"] = (pod.metadata.annotations or {}).get(CONFIG_HASH, "")
    shown["state"] = "ready" if seen["ready"] else seen["reason"].partition(":")[0] or seen["phase"].lower()
    last = seen["last_words"].strip().splitlines()
    shown["cause"] = waits or (last[-1] if last and seen["phase"] != "Pending" else "")
    shown["supervisor"] = {key: told.get(key) for key in TOLD} if told else None
    if told:
        shown["cause"] = waits or cause(told)
        shown["state"] = "ready" if seen["ready"] else str(told.get("phase"))
    return shown


def cause(told: Mapping[str, Any]) -> str:
    """What is wrong now; of an epoch that is over it says so."""
    if told.get("rails"):
        return str(told["rails"][0])
    named, begun = str(told.get("cause") or ""), told.get("cause_phase") == "failed"
    return f"epoch {told['cause_epoch']} ended: {named}" if named and begun and "cause_epoch" in told else named


def absent(planned: Mapping[str, Any], warnings: Mapping[str, str], group: str = "") -> Rank:
    """`group`: what its objects begin with, where another group's ranks of the same number may have events too."""
    name = f"{group}-rank{planned['rank']}"
    told = next((text for of, text in warnings.items() if (of == name if group else of.endswith(name))), "")
    why_not = why.explained(told, str(planned["node"])) or "playbooks/serve.yml makes it again"
    return {
        "rank": str(planned["rank"]), "node": str(planned["node"]), "pod": "", "ready": False, "restarts": 0,
        "config_hash": "", "state": "no pod", "cause": why_not, "supervisor": None,
    }  # fmt: skip


def order(rank: Rank) -> int:
    return int(rank["rank"]) if rank["rank"].isdigit() else 99
