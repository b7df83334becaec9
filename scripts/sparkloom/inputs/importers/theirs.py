"""What others' formats call our engines and their flags: `theirs.yml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_READ: dict[str, Any] = yaml.load(Path(__file__).with_suffix(".yml").read_text(), yaml.CSafeLoader)
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
