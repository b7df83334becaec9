"""How what measures for hours is ended early."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(told: Callable[[int], None]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) is told, so that what is done is kept; the second one ends the program."""
    heard: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)
        told(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
