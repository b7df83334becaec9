"""Vision towers: their tensors as `towers.yml` has them, with the widths of a model's own vision_config."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.inputs.checkpoint.config import Config
from sparkloom.inputs.checkpoint.tensors import Tensor, computed, listed


def of(config: Config, name: str, **given: int) -> tuple[Tensor, ...]:
    """The tower below the model's vision_config; none where config.json has no such section."""
    section, tower = config.section("vision_config"), _read()[name]
    if section is None:
        return ()
    facts, otherwise = section.about("vision"), {**tower.get("else", {}), **given}

    def width(word: str) -> int:
        """A list is as wide as it is long, a flag is 0 or 1."""
        said = facts.value(word)
        if isinstance(said, list | bool):
            return len(said) if isinstance(said, list) else int(said)
        return computed(otherwise[word], width) if said is None and word in otherwise else facts.number(word)

    return tuple(tensor for place, rows in tower["places"].items() for tensor in listed(place, rows, width, "vision"))


@cache
def _read() -> dict[str, Any]:
    read: dict[str, Any] = document.own(Path(__file__).with_suffix(".yml").read_text())
    return read
