"""A number that can say how it was made: what `plan --explain` shows beside it."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is None where a fact is missing; `formula` then says which."""

    value: float | int | None
    formula: str
    origin: str = "computed"

    @property
    def number(self) -> float:
        """The value to compute with; nought where a fact is missing."""
        return float(self.value or 0)

    @property
    def shown(self) -> float | int | None:
        """The value as JSON gives it: whole numbers whole, others to four digits behind the point."""
        return round(self.value, 4) if isinstance(self.value, float) else self.value
