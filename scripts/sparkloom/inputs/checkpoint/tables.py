"""Tensors by table: vision towers (`towers.yml`), and what architectures have beside their parts (`extras.yml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.tensors import Tensor, Width, computed, listed


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
