"""No rule: which published images have a package that a flag needs (judge/data/image_packages.yml)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.judge.rules.base import within
from sparkloom.launch.view import LaunchView

DATA = Path(__file__).parents[1] / "data" / "image_packages.yml"


@cache
def every() -> dict[str, list[dict[str, Any]]]:
    """Package -> what is known of images, in order."""
    known: dict[str, list[dict[str, Any]]] = document.own(DATA.read_text(encoding="utf-8"))
    return known


def known(package: str, view: LaunchView) -> dict[str, Any] | None:
    """The entry about a launch's image; None where nobody looked."""
    for entry in every().get(package, ()):
        held = not entry.get("releases") or within(view.release, entry["releases"])
        if held and re.search(entry["image"], view.image):
            return entry
    return None
