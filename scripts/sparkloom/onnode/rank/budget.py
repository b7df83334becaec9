"""How often a group is started anew: failures without a token in between, however long each load takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sparkloom.onnode.rank import causes

LONGEST_PAUSE = 10.0
PROVED = 10.0  # seconds after the first token: a rank that falls at once has done so


class RestartBudget:
    """So many failures of its own in a row without a token, or within `window`, then the group stays down.

    The row is what counts for a large model: five loads of 490 s never fell into one window of 600 s. The window is
    for a small one that gives a token after each start and falls at once.
    """

    def __init__(self, restarts: int, window: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.restarts, self.window, self.clock = restarts, window, clock
        self.row: list[str] = []  # what each failure since the last token was that counted as a proof
        self.served = False  # whether one came meanwhile that did not: the group fell soon after it
        self._failures: list[float] = []

    def failed(self, cause: str = "") -> bool:
        """Counts one failure; False when there is no restart left for it."""
        self.row.append(causes.kind(cause))
        self._failures = [*self.recent(), self.clock()]
        return self.count() <= self.restarts

    def count(self) -> int:
        """What counts against it now."""
        return max(len(self.row), len(self.recent()))

    def token(self) -> None:
        """One that proved the group: it served on, or was ended from outside."""
        self.row.clear()
        self.served = False

    def again(self) -> int:
        """How many of the last failures in a row were the same; 1 for a new one."""
        same = 0
        while same < len(self.row) and self.row[-1 - same] == self.row[-1]:
            same += 1
        return same

    def spent(self) -> str:
        """The words for a group that is given up."""
        if len(self.row) > self.restarts:
            return self.in_a_row(len(self.row))
        return f"failed {len(self.recent())} times in {self.window / 60:.0f} min"

    def in_a_row(self, times: int) -> str:
        how = f", each time before it had served for {PROVED:.0f} s" if self.served else " without a token"
        return f"failed {times} times in a row{how}"

    def recent(self) -> list[float]:
        now = self.clock()
        return [at for at in self._failures if now - at < self.window]

    def ages(self) -> list[float]:
        """For another rank's clock: a new rank 0 learns from the others what it cannot remember."""
        now = self.clock()
        return [round(now - at, 1) for at in self.recent()]

    def learn(self, ages: Iterable[float], row: Iterable[str] = (), *, served: bool = False) -> None:
        if len(told := [float(age) for age in ages]) > len(self.recent()):
            now = self.clock()
            self._failures = sorted(now - age for age in told)
        if len(kinds := [str(kind) for kind in row]) > len(self.row):
            self.row, self.served = kinds, self.served or served

    def pause(self) -> float:
        """Seconds before the next start: none after the first failure, ten at most."""
        return float(min(2 * max(0, self.count() - 1), LONGEST_PAUSE))
