"""What a judgement takes for true and nobody here knows: one type for every output, under one sign."""

from __future__ import annotations

from dataclasses import dataclass

SIGN = "~"  # before an assumption, and before a value that follows from one


@dataclass(frozen=True, slots=True)
class Assumption:
    about: str  # facts, release, flags or memory: the value that carries the sign
    what: str
    why: str
    instead: str  # an option that replaces it, or what else a person does
    decides: bool = True  # a start can fail by it

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; instead: {self.instead}"
