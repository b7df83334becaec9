"""Is the model of the profile whole on every node, does what runs equal what would be rendered, does it serve?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.site.watch import State

FETCH = "playbooks/models.yml brings and verifies it"
SERVE = "playbooks/serve.yml starts it and says why when it cannot"


def weights(nodes: Sequence[str], checked: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """`checked`: what the store's own check said on each node."""
    for node in nodes:
        answers = checked.get(node, {}).get("answer")
        if answers is None:
            why = str(checked.get(node, {}).get("msg") or "not asked")
            yield Finding(node, "weights", why, "an answer of its store", "what it says; -vvv says more")
        for answer in answers or ():
            for problem in answer["problems"]:
                yield Finding(node, str(answer["id"]), problem, "whole and verified", FETCH)


def ranks(profile: str, nodes: Sequence[str], config_hash: str, pods: Sequence[tuple[State, str]]) -> list[Finding]:
    """`nodes`: the node of each planned rank; `pods`: every pod's state with the config hash that it carries."""
    if not pods:
        return [Finding("cluster", "model", "nothing served", profile, SERVE)]
    by_rank = {state.rank: (state, carried) for state, carried in pods}
    return [finding for rank, node in enumerate(nodes) for finding in _rank(rank, node, config_hash, by_rank)]


def _rank(rank: int, node: str, config_hash: str, by_rank: Mapping[str, tuple[State, str]]) -> Iterator[Finding]:
    check = f"rank {rank}"
    if str(rank) not in by_rank:
        yield Finding(node, check, "no pod", "a pod", SERVE)
        return
    state, carried = by_rank[str(rank)]
    if carried != config_hash:
        yield Finding(node, check, f"config {carried}", f"config {config_hash}", SERVE)
    if not state.ready:
        why = state.reason or state.phase.lower()
        log = f"kubectl logs {state.pod} shows why; sparkloom diagnose reads it"
        yield Finding(node, check, f"not ready ({why}, {state.restarts} restarts)", "ready", log)
    elif state.restarts:
        log = "its log before: kubectl logs -p"
        yield Finding(node, check, f"{state.restarts} restarts", "none", log, "warning")
