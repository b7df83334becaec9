"""What a node should be, judged from what a probe read on it: rows for one table over all nodes.

A probe (plugins/modules/sparkloom_probe.py) only reads; every judgement and every piece of advice stands here,
so that preflight, the fabric role's read-back and doctor say the same about the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Row:
    """One check that did not hold on one node."""

    node: str
    check: str
    found: str
    expected: str
    change: str
    severity: Severity = "error"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def failures(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.severity == "error"]


def table(rows: Iterable[Row]) -> str:
    """One line of facts per row and what to do under it; nodes with the same trouble share a block."""
    blocks: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        blocks.setdefault((row.severity, row.check, row.found, row.expected, row.change), []).append(row.node)
    lines = []
    for (severity, check, found, expected, change), nodes in blocks.items():
        mark = "FAIL" if severity == "error" else "warn"
        lines.append(f"{mark}  {','.join(nodes)}  {check}: found {found}; expected {expected}")
        lines.append(f"      -> {change}")
    return "\n".join(lines)
