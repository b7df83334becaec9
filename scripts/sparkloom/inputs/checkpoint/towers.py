"""Vision towers: their tensors as `towers.yml` has them, with the widths of a model's own vision_config."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.parts import Tensor, norm, vector

_REPEATED = re.compile(r"<(\w+)>|\{([\w,]+)\}")


def of(config: Config, name: str, **given: int) -> tuple[Tensor, ...]:
    """The tower below the model's vision_config; none where config.json has no such section."""
    section, tower = config.section("vision_config"), _read()[name]
    if section is None:
        return ()
    widths = Widths(section.about("vision"), {**tower.get("else", {}), **given})
    return tuple(
        tensor
        for place, rows in tower["places"].items()
        for row, said in rows.items()
        if widths.of(said.get("if", 1))
        for full in _names(f"{place}.{row}" if place else row, widths)
        for tensor in _tensors(full, said, widths)
    )


class Widths:
    """Words of a vision_config as numbers: a list is as wide as it is long, a flag is 0 or 1."""

    def __init__(self, facts: Config, otherwise: Mapping[str, int | str]) -> None:
        self.facts, self.otherwise = facts, otherwise

    def of(self, term: int | str) -> int:
        """Of `3 * hidden_size / heads`, from left to right."""
        first, *rest = str(term).split()
        total = self._one(first)
        for sign, word in zip(rest[::2], rest[1::2], strict=True):
            total = total * self._one(word) if sign == "*" else total // self._one(word)
        return total

    def _one(self, word: str) -> int:
        if word.isdigit():
            return int(word)
        said = self.facts.value(word)
        if isinstance(said, list | bool):
            return len(said) if isinstance(said, list) else int(said)
        return self.of(self.otherwise[word]) if said is None and word in self.otherwise else self.facts.number(word)


def _names(name: str, widths: Widths) -> Iterator[str]:
    choices = [
        [str(number) for number in range(widths.of(counted))] if counted else words.split(",")
        for counted, words in _REPEATED.findall(name)
    ]
    for chosen in product(*choices):
        left = iter(chosen)
        yield _REPEATED.sub(lambda _: next(left), name)  # noqa: B023


def _tensors(name: str, said: Mapping[str, Any], widths: Widths) -> Iterator[Tensor]:
    bias = said.get("bias") is True or bool(widths.of(said.get("bias", 0)))
    if "norm" in said:
        yield from norm(name, widths.of(said["norm"]), bias=bias)
        return
    kind = next(kind for kind in ("matrix", "table", "vector") if kind in said)
    shape = tuple(widths.of(term) for term in said[kind])
    yield Tensor(name if kind == "vector" else f"{name}.weight", shape, "vision", linear=kind == "matrix")
    if bias:
        yield vector(f"{name}.bias", shape[0], "vision")


@cache
def _read() -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(Path(__file__).with_suffix(".yml").read_text(), yaml.CSafeLoader)
    return read
