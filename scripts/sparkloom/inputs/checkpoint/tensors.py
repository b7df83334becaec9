"""Tensors of a model by name, shape and group; and the tables that list them.

`towers.yml` has vision towers, `extras.yml` what architectures have beside their parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal

from sparkloom.base import arithmetic, document
from sparkloom.inputs.checkpoint.config import Config

Group = Literal[
    "embedding", "head", "attention", "linear", "mamba", "experts", "shared", "router", "latent", "dense", "norms",
    "vision", "draft", "tables", "other",
]  # fmt: skip
Width = Callable[[str], int]  # of a word in a table
_REPEATED = re.compile(r"<(\w+)>|\{([\w.,]+)\}")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor, or as many equal ones as `copies` says (`*` in the name is their number)."""

    name: str
    shape: tuple[int, ...]
    group: Group
    copies: int = 1
    linear: bool = True  # a matrix that tokens are multiplied with: what a packer may pack
    always: str = ""  # a type that it has whatever the packer did: f32, bf16, f8, i64
    scaled: int = 0  # numbers that share an exponent byte beside it; 0 = none do

    @property
    def elements(self) -> int:
        return prod(self.shape) * self.copies


def vector(name: str, size: int, group: Group = "norms", always: str = "") -> Tensor:
    return Tensor(name, (size,), group, linear=False, always=always)


def norm(name: str, size: int, *, bias: bool = False) -> Iterator[Tensor]:
    if size:
        yield vector(f"{name}.weight", size)
        if bias:
            yield vector(f"{name}.bias", size)


def computed(term: int | str, width: Width) -> int:
    """`3 * (hidden_size + rope) / heads`."""
    return arithmetic.value(arithmetic.parsed(str(term)), width)


def listed(place: str, rows: Mapping[str, Mapping[str, Any]], width: Width, group: Group) -> Iterator[Tensor]:
    """The tensors of a table's rows below a place; `towers.yml` says what may stand in a row."""
    for row, said in rows.items():
        if computed(said.get("if", 1), width) and not computed(said.get("unless", 0), width):
            for name in _names(f"{place}.{row}" if place else row, width):
                yield from _of_row(name, said, width, said.get("group", group))


def _names(name: str, width: Width) -> Iterator[str]:
    choices = [
        [str(number) for number in range(width(counted))] if counted else words.split(",")
        for counted, words in _REPEATED.findall(name)
    ]
    for chosen in product(*choices):
        left = iter(chosen)
        yield _REPEATED.sub(lambda _: next(left), name)  # noqa: B023


def _of_row(name: str, said: Mapping[str, Any], width: Width, group: Group) -> Iterator[Tensor]:
    bias = said.get("bias") is True or bool(computed(said.get("bias", 0), width))
    if "norm" in said:
        yield from norm(name, computed(said["norm"], width), bias=bias)
        return
    kind = next(kind for kind in ("matrix", "table", "vector") if kind in said)
    shape = tuple(computed(term, width) for term in said[kind])
    copies, always = computed(said.get("copies", 1), width), said.get("always", "")
    whole = name if kind == "vector" else f"{name}.weight"
    yield Tensor(whole, shape, group, copies, linear=kind == "matrix", always=always)
    if bias:
        yield vector(f"{name}.bias", shape[0], group)


def tower(config: Config, name: str, **given: int) -> tuple[Tensor, ...]:
    """The tower below the model's vision_config; none where config.json has no such section."""
    section, table = config.section("vision_config"), read("towers")[name]
    if section is None:
        return ()
    width = _widths(section.about("vision"), table, given)
    return tuple(tensor for place, rows in table["places"].items() for tensor in listed(place, rows, width, "vision"))


def extras(text: Config, name: str, at: str = "", **given: int) -> tuple[Tensor, ...]:
    """Those of one table, below a place."""
    table = read("extras")[name]
    width = _widths(text.about(table.get("about", "")), table, given)
    return tuple(listed(at, table["tensors"], width, table["group"]))


def _widths(facts: Config, table: Mapping[str, Any], given: Mapping[str, int]) -> Width:
    otherwise = {**table.get("else", {}), **{word: int(number) for word, number in given.items()}}

    def width(word: str) -> int:
        """A list is as wide as it is long, a flag is 0 or 1."""
        said = facts.value(word)
        if isinstance(said, list | bool):
            return len(said) if isinstance(said, list) else int(said)
        return computed(otherwise[word], width) if said is None and word in otherwise else facts.number(word)

    return width


@cache
def read(name: str) -> dict[str, Any]:
    """One of the files of tables beside this one."""
    tables: dict[str, Any] = document.own(Path(__file__).with_name(f"{name}.yml").read_text())
    return tables
