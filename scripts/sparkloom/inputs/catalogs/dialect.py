"""What one engine's own parser does beyond argparse: said in that engine's folder, handed to its catalogs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# What the parser lets through and a person should still hear about.
ACCEPTED_KINDS = frozenset({"abbreviated", "deprecated", "unregistered", "missing-model"})


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """One thing about a command line. `rejected`: the engine's own parser would refuse to start."""

    flag: str
    message: str
    kind: str

    @property
    def rejected(self) -> bool:
        return self.kind not in ACCEPTED_KINDS


class FlagError(ValueError):
    def __init__(self, problem: FlagProblem) -> None:
        self.problem = problem
        super().__init__(problem.message)


Normalised = tuple[list[str], list[FlagProblem]]


def _as_it_stands(words: list[str]) -> Normalised:
    return words, []


@dataclass(frozen=True, eq=False)  # one object per engine: compared by identity
class Dialect:
    prefixes: tuple[str, ...] = ()  # of the engine's own environment variables
    suffixes: Mapping[str, int] = field(default_factory=dict)  # behind a size, as in 8K
    # A LoRA adapter as JSON: names that it must have, those that it may have (None: any); and is a bare path enough?
    lora_must: frozenset[str] = frozenset()
    lora_may: frozenset[str] | None = None
    lora_path: bool = True
    normalise: Callable[[list[str]], Normalised] = _as_it_stands  # the words before argparse sees them


PLAIN = Dialect()
