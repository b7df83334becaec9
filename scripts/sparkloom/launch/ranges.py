"""What an engine's numbers may be, where its parser takes any: each engine's folder says its own in `engine.yml`.

The engines read `--mem-fraction-static 9.0` without a word and end minutes later, in the middle of the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkloom.inputs.catalogs.flagtypes import FlagProblem


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `least` to `most`; `above` and `below` are limits that a value may not reach."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    also: tuple[float, ...] = ()  # values outside that the engine gives a meaning

    def holds(self, value: float) -> bool:
        return value in self.also or (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        limits = {"above": self.above, "from": self.least, "to": self.most, "below": self.below}
        said = " ".join(f"{word} {limit:,g}" for word, limit in limits.items() if limit is not None)
        said = f"a number {said}" if self.most is not None or self.below is not None else f"a number {said} on"
        return f"{said}, or {' or '.join(f'{value:g}' for value in self.also)}" if self.also else said


NAMED = {
    "count": Range(least=1),  # of tokens, requests, steps
    "not negative": Range(least=0),
    "share": Range(above=0, most=1),
}


def of(limits: str | dict[str, Any]) -> Range:
    """As engine.yml says it: one of the named ranges, or its limits."""
    return NAMED[limits] if isinstance(limits, str) else Range(**{**limits, "also": tuple(limits.get("also", ()))})


def problems(ranges: Mapping[str, Range], name: str, value: object) -> Iterator[FlagProblem]:
    """What is out of range in one flag's value; `flag.key` in `ranges` is a key of the mapping that it takes."""
    if name in ranges:
        for number in value if isinstance(value, list) else [value]:
            yield from _number(ranges[name], name, number)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _inside(ranges, f"{name}.{key}", inner)


def _inside(ranges: Mapping[str, Range], path: str, value: Any) -> Iterator[FlagProblem]:
    """No catalog types what stands in a mapping: a number in quotes is named here."""
    if path in ranges and isinstance(value, str):
        text = f"{path}: expected a number, found the text '{value}'; write it without quotes"
        yield FlagProblem(path, text, "type")
    else:
        yield from problems(ranges, path, value)


def _number(limits: Range, name: str, value: object) -> Iterator[FlagProblem]:
    if isinstance(value, int | float) and not isinstance(value, bool) and not limits.holds(value):
        yield FlagProblem(name, f"{name}: expected {limits}, found {value:,g}", "range")
