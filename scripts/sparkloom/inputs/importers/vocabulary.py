"""What others' formats call our engines and their flags, and why some of their words stay behind: `vocabulary.yml`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sparkloom.base import document

_READ: dict[str, Any] = document.own(Path(__file__).with_suffix(".yml").read_text())
RUNTIMES: dict[str, str] = _READ["runtimes"]
WRITTEN: dict[str, str] = _READ["written"]
FIRST: str = _READ["first"]
USUAL: str = _READ["usual"]
MODEL: dict[str, str] = _READ["model"]
COOKBOOK: str = _READ["cookbook"]
IMAGES: dict[str, str] = _READ["images"]
NAMED: dict[str, str] = _READ["named"]
OFFICIAL: list[str] = _READ["official"]
FLAGS: dict[str, dict[str, str]] = _READ["flags"]
SERVICES: dict[str, str] = _READ["services"]
SHELL: dict[str, str] = _READ["shell"]
COMPOSE: dict[str, str] = _READ["compose"]


def _reasons(key: str) -> dict[str, str]:
    return {name: str(row["why"]) for row in _READ[key] for name in row["of"]}


OPTIONS = _reasons("options")
RECIPE = _reasons("recipe")
_VARIABLES = _reasons("variables")


def of_their_machine(variable: str) -> str:
    """Why a variable of the environment is about the author's machine; empty where it is a setting."""
    return next((why for pattern, why in _VARIABLES.items() if re.fullmatch(pattern, variable)), "")
