"""What is the same on every site but for a few values: Kubernetes' manifests and Envoy's files, as these two have them.

A word with a dollar stands for a value there: alone for any value, within a longer text for its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from sparkloom.base import document


def objects(file: str, /, **values: Any) -> list[dict[str, Any]]:
    """What `<file>.yml` has, by its path below this folder, in its order; every word of it must have a value."""
    return [_filled(item, values) for item in _read(file)]


def one(file: str, /, **values: Any) -> dict[str, Any]:
    """Of a file with one object."""
    (made,) = objects(file, **values)
    return made


@cache
def _read(file: str) -> tuple[dict[str, Any], ...]:
    return tuple(document.owns((Path(__file__).parent / f"{file}.yml").read_text(encoding="utf-8")))


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {key: _filled(value, values) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(item, values) for item in part]
    if not isinstance(part, str) or "$" not in part:
        return part
    return deepcopy(values[part[1:]]) if part[1:] in values else Template(part).substitute(values)
