"""A clock that goes from one appointment to the next: hours of a supervisor's life in a second, at any machine load."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

import pytest


class Selector(selectors.DefaultSelector):
    """Waits by moving the clock."""

    clock: Clock

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits, and nothing will ever happen"
            self.clock.now += max(0.0, timeout)
        return ready


class Clock(asyncio.SelectorEventLoop):
    """The event loop, and what `time` says while a test runs.

    Work in threads is done at once and takes `took` seconds.
    """

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.took: Callable[[], float] = lambda: 0.0
        selector = Selector()
        selector.clock = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        done, result = self.create_future(), func(*args)
        self.call_later(self.took(), lambda: done.done() or done.set_result(result))
        return done

    def add_signal_handler(self, *_: Any) -> None:
        """Nobody kills the test."""

    def sleep(self, seconds: float) -> None:
        """For who waits outside of the loop: everything inside goes on meanwhile."""
        self.run_until_complete(asyncio.sleep(seconds))

    def rule(self, patch: pytest.MonkeyPatch, *defaults: Any) -> None:
        """From now on this is the time, also where a function took the real one as its default."""
        real = time.monotonic
        patch.setattr(time, "monotonic", self.time)
        patch.setattr(time, "time", self.time)
        for function in defaults:
            told = tuple(self.time if value is real else value for value in function.__defaults__ or ())
            patch.setattr(function, "__defaults__", told)
