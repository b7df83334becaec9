"""The picture of a site, made at most once in a while for all who look, and kept while the cluster does not answer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from sparkloom.onnode.kube import Unreached

EVERY = 3.0  # seconds in which nobody looks again
WAITS = 4.0  # for a picture that is being made; then who asks gets the last one


class Told(NamedTuple):
    """`age`: seconds since the cluster said this."""

    body: bytes
    age: float


class Kept:
    """Nobody looks at the cluster while nobody looks at the page."""

    def __init__(
        self, look: Callable[[], dict[str, Any]], *, every: float = EVERY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look, self._every, self._clock = look, every, clock
        self._changed = threading.Condition()
        self._making = False
        self._picture: dict[str, Any] = {}
        self._at = self._tried = float("-inf")
        self._problem = ""

    def told(self) -> Told | None:
        """None where nothing could be seen yet: `problem` says why."""
        with self._changed:
            if self._clock() - self._tried >= self._every and not self._making:
                self._making = True
                threading.Thread(target=self._make, name="look", daemon=True).start()
            self._changed.wait_for(lambda: not self._making, WAITS)
            age = self._clock() - self._at
            if not self._picture:
                return None
            problems = [*self._picture["problems"], *filter(None, [self._problem])]
            return Told(json.dumps({**self._picture, "problems": problems}).encode(), max(0.0, age))

    @property
    def problem(self) -> str:
        return self._problem or "the cluster has not answered yet"

    def _make(self) -> None:
        made, problem, begun = {}, "", self._clock()
        try:
            made = self._look()
        except Unreached as error:
            problem = str(error)
        except Exception as error:  # what nobody thought of must not end the thread that all wait for
            problem = f"what the cluster says cannot be read: {type(error).__name__}: {error}"
        with self._changed:
            if made:
                self._picture, self._at = made, begun
            self._problem, self._tried, self._making = problem, self._clock(), False
            self._changed.notify_all()
