"""Which flag was meant by a key that no release of an engine has: its own name for the thing comes first."""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher

from sparkloom.base.errors import did_you_mean
from sparkloom.launch import engines

CLOSE = 0.78  # of two names' letters
PARALLEL = {
    "tp": ("tp", "tp_size", "tensor_parallel", "tensor_parallel_size"),
    "pp": ("pp", "pp_size", "pipeline_parallel", "pipeline_parallel_size"),
    "dp": ("dp", "data_parallel"),
    "ep": ("ep", "ep_size", "expert_parallel", "expert_parallel_size"),
    "nodes": ("nnodes", "num_nodes", "nodes"),
}


def hint(engine: str, key: str, known: Collection[str]) -> str:
    """`; write ...`, `; did you mean ...?`, or nothing."""
    plain = key.replace("-", "_").strip("_")
    if plain in known:
        return f"; write '{plain}'"
    for part, spellings in PARALLEL.items():
        if plain in spellings:
            return f"; write launch.parallel.{part}"
    meant = _same_thing(engine, plain)
    if meant and meant[0] == engine:
        return f"; did you mean '{meant[2]}'?"
    if meant:
        return f"; {meant[0]} calls it '{meant[1]}', {engine} '{meant[2]}'"
    return did_you_mean(key, known)


def _same_thing(engine: str, key: str) -> tuple[str, str, str] | None:
    """Whose name the key is nearest to, that name, and this engine's own name for the thing."""
    own = engines.get(engine).called
    candidates = [
        (_likeness(key, name), asked == engine, asked, name, own[thing])
        for asked in engines.names()
        for thing, name in engines.get(asked).called.items()
        if thing in own
    ]
    best = max(candidates, default=None)
    return (best[2], best[3], best[4]) if best and best[0] >= CLOSE else None


def _likeness(key: str, name: str) -> float:
    """Letters in common; a key of two words and more that a name begins with counts as that name."""
    if "_" in key and name.startswith(f"{key}_"):
        return 0.99
    return SequenceMatcher(None, key, name).ratio()
