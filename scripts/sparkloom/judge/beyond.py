"""A measured speed against what memory allows. Standard library only: `bench` asks at every level it measures."""

from __future__ import annotations

ERROR = 1.02  # a rate is a quotient of two arrival times, and the bandwidth a rounded figure


def impossible(measured: float, bound: float | None) -> bool:
    """Beyond what any computation of the model can reach: it was not computed, or wrongly counted."""
    return bound is not None and bound > 0 and measured > bound * ERROR


def doubt(measured: float, ceiling: float | None) -> str:
    """A figure above the expected ceiling is no verdict; nothing is said of one below."""
    if ceiling is None or measured <= ceiling:
        return ""
    return (
        f"{measured:.1f} tok/s is above the {ceiling:.1f} that is expected at best: alike prompts wake few experts, "
        "and so does garbage; read an answer"
    )
