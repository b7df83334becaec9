"""How often a group may be started anew: so many failures of its own within a window, then it stays down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable


class Budget:
    def __init__(self, restarts: int, window: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.restarts, self.window, self.clock = restarts, window, clock
        self._failures: list[float] = []

    def failed(self) -> bool:
        """Counts one failure; False when there is no restart left for it."""
        self._failures = [*self.recent(), self.clock()]
        return len(self._failures) <= self.restarts

    def recent(self) -> list[float]:
        now = self.clock()
        return [at for at in self._failures if now - at < self.window]

    def ages(self) -> list[float]:
        """For another rank's clock: a new rank 0 learns from the others what it cannot remember."""
        now = self.clock()
        return [round(now - at, 1) for at in self.recent()]

    def learn(self, ages: Iterable[float]) -> None:
        if len(told := [float(age) for age in ages]) > len(self.recent()):
            now = self.clock()
            self._failures = sorted(now - age for age in told)

    def pause(self) -> float:
        """Seconds before the next start: none after the first failure, ten at most."""
        return float(min(2 * max(0, len(self.recent()) - 1), 10))
