"""What an engine says of itself on /metrics, under names that are the same for every engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

# engine's name -> ours, and how several series (ranks, models) become one figure: sum, max, mean, counter
Names = Mapping[str, tuple[str, str]]


def read(page: bytes, names: Names) -> dict[str, float]:
    """Our names and their values; numbers that are none are left out."""
    found: dict[str, list[float]] = defaultdict(list)
    how = dict(names.values())
    for line in page.decode(errors="replace").split("\n"):
        name = line.partition("{")[0].split(" ", 1)[0].split("\t", 1)[0]
        if name not in names:
            continue
        try:
            value = float(line[len(name) :].rpartition("}")[2].split()[0])  # a time may follow
        except (ValueError, IndexError):
            continue
        if value == value and abs(value) != float("inf"):
            found[names[name][0]].append(value)
    return {ours: _joined(how[ours], values) for ours, values in found.items()}


def _joined(how: str, values: list[float]) -> float:
    if how == "max":
        return max(values)
    return sum(values) / (len(values) if how == "mean" else 1)
