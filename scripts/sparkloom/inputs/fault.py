"""What cannot be in a file, and which key of it to change."""

from __future__ import annotations

from dataclasses import dataclass

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that cannot be, or should not, and the key of the file to change."""

    loc: Loc
    message: str

    def __str__(self) -> str:
        return f"{'.'.join(str(part) for part in self.loc)}: {self.message}"
