"""An engine's image, however it was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.base.steps import Step


@dataclass(frozen=True)
class Image:
    release: str
    reference: str
    archive: Callable[[], Path]
    steps: Callable[[], list[Step]]
