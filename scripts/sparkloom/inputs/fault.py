"""What cannot be in an inventory, and which key of it to change."""

from __future__ import annotations

from dataclasses import dataclass

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that cannot be, and the key of the inventory to change."""

    loc: Loc
    message: str

    def __str__(self) -> str:
        return f"{'.'.join(str(part) for part in self.loc)}: {self.message}"
