"""Does what runs equal what would be rendered now, and does every rank serve?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sparkloom.site.checks import Row
from sparkloom.site.watch import State

SERVE = "playbooks/serve.yml starts it and says why when it cannot"


def judge(profile: str, nodes: Sequence[str], config_hash: str, ranks: Sequence[tuple[State, str]]) -> list[Row]:
    """`nodes`: the node of each planned rank; `ranks`: every pod's state with the config hash that it carries."""
    if not ranks:
        return [Row("cluster", "model", "nothing served", profile, SERVE)]
    by_rank = {state.rank: (state, carried) for state, carried in ranks}
    return [row for rank, node in enumerate(nodes) for row in _rank(rank, node, config_hash, by_rank)]


def _rank(rank: int, node: str, config_hash: str, by_rank: Mapping[str, tuple[State, str]]) -> Iterator[Row]:
    found = by_rank.get(str(rank))
    if found is None:
        yield Row(node, f"rank {rank}", "no pod", "a pod", SERVE)
        return
    state, carried = found
    if carried != config_hash:
        yield Row(node, f"rank {rank}", f"config {carried}", f"config {config_hash}", SERVE)
    if not state.ready:
        why = state.reason or state.phase.lower()
        log = f"kubectl logs {state.pod} shows why; sparkloom diagnose reads it"
        yield Row(node, f"rank {rank}", f"not ready ({why}, {state.restarts} restarts)", "ready", log)
    elif state.restarts:
        yield Row(
            node, f"rank {rank}", f"{state.restarts} restarts", "none", "its log before: kubectl logs -p", "warning"
        )
