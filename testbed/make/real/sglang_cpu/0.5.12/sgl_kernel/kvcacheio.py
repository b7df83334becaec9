"""What 0.5.12 takes from here when it is imported, for a cache in the host's memory: never called on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgl_kernel import found


def __getattr__(name: str) -> Callable[..., Any]:
    return found(name)
