"""What the nodes' stores answered, of the nodes that a run is about: with --limit the others were not asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sparkloom.base.errors import InputError


def held(order: Sequence[str], checks: Mapping[str, Mapping[str, Any]], asked: Collection[str]) -> dict[str, Any]:
    """Node -> answer, in their order; refused where a node that was asked gave none, or none was asked at all."""
    mine = [node for node in order if node in asked]
    if not mine:
        message = f"names none of the nodes that serve this profile ({', '.join(order)})"
        raise InputError.single("--limit", message, rule="limit")
    silent = [node for node in mine if "answer" not in checks.get(node, {})]
    if silent:
        said = "; ".join(f"{node}: {checks.get(node, {}).get('msg') or 'nothing'}" for node in silent)
        message = f"did not say what it holds ({said}); mend it, or go on without it: --limit '!{silent[0]}'"
        raise InputError.single(", ".join(silent), message, rule="no-answer")
    return {node: checks[node]["answer"] for node in mine}
