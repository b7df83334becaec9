"""Every planned rank as it is: its pod, its supervisor's own words, why it waits; also one that has no pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from sparkloom.render.manifests.names import CONFIG_HASH
from sparkloom.site import watch, why
from sparkloom.site.client import Client
from sparkloom.site.rank_state import State

TOLD = ("phase", "text", "cause", "epoch", "transport", "serving", "rails", "read")
Rank = dict[str, Any]


def read(reached: Client, pods: Sequence[Any], planned: Sequence[Mapping[str, Any]], group: str = "") -> list[Rank]:
    """`planned`: rank and node of each, as the record of what was applied has them; `group`: what its objects begin
    with, where another group's ranks of the same number may have events too.
    """
    states = [watch.state(pod) for pod in pods]
    absent = {str(rank["rank"]) for rank in planned} - {state.rank for state in states}
    troubled = absent or not all(state.ready for state in states)
    warnings, nodes = (reached.warnings(), reached.nodes()) if troubled else ({}, {})
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda pod: reached.told(pod.metadata.name) if _runs(pod) else None, pods))
    shown = [
        _rank(pod, state, said, why.waits(pod, warnings, nodes))
        for pod, state, said in zip(pods, states, told, strict=True)
    ]
    shown += [_absent(rank, warnings, group) for rank in planned if str(rank["rank"]) in absent]
    return sorted(shown, key=lambda rank: int(rank["rank"]) if rank["rank"].isdigit() else 99)


def _rank(pod: Any, state: State, told: dict[str, Any] | None, waits: str) -> Rank:
    seen = asdict(state)
    shown = {key: seen[key] for key in ("rank", "node", "pod", "ready", "restarts")}
    shown["config_hash"] = (pod.metadata.annotations or {}).get(CONFIG_HASH, "")
    shown["state"] = "ready" if seen["ready"] else seen["reason"].partition(":")[0] or seen["phase"].lower()
    last = seen["last_words"].strip().splitlines()
    shown["cause"] = waits or (last[-1] if last and seen["phase"] != "Pending" else "")
    shown["supervisor"] = {key: told.get(key) for key in TOLD} if told else None
    if told:
        shown["cause"] = waits or _cause(told)
        shown["state"] = "ready" if seen["ready"] else str(told.get("phase"))
    return shown


def _cause(told: Mapping[str, Any]) -> str:
    """What is wrong now; of an epoch that is over it says so."""
    if told.get("rails"):
        return str(told["rails"][0])
    cause, begun = str(told.get("cause") or ""), told.get("cause_phase") == "failed"
    return f"epoch {told['cause_epoch']} ended: {cause}" if cause and begun and "cause_epoch" in told else cause


def _runs(pod: Any) -> bool:
    return bool(pod.status.phase == "Running")


def _absent(planned: Mapping[str, Any], warnings: Mapping[str, str], group: str) -> Rank:
    name = f"{group}-rank{planned['rank']}"
    told = next((text for of, text in warnings.items() if (of == name if group else of.endswith(name))), "")
    cause = why.explained(told, str(planned["node"])) or "playbooks/serve.yml makes it again"
    return {
        "rank": str(planned["rank"]), "node": str(planned["node"]), "pod": "", "ready": False, "restarts": 0,
        "config_hash": "", "state": "no pod", "cause": cause, "supervisor": None,
    }  # fmt: skip
