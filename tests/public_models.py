"""Public models as their own files describe them: what our readers ask of config.json and of a packer's file.

`data/models/<org>--<name>.yml`: those words under `says`, where they were read, and what the hub counts of the model.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.places import DATA

NAMES = sorted(path.stem for path in (DATA / "models").glob("*.yml"))


@cache
def facts(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.load((DATA / "models" / f"{name}.yml").read_text(), yaml.CSafeLoader)
    return read


@cache
def folder(name: str) -> Path:
    """As a folder with such files, under the model's name."""
    place = _scratch() / name
    place.mkdir()
    for file, words in facts(name)["says"].items():
        (place / f"{file}.json").write_text(json.dumps(words))
    return place


@cache
def _scratch() -> Path:
    made = Path(tempfile.mkdtemp(prefix="public-models-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
