"""What the engine says of itself on /metrics, under the names of each engine: before, during and after a level."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any, Literal

from sparkloom.launch import engines
from sparkloom.measure.bench.http1 import Garbled, Response
from sparkloom.measure.bench.loop import Loop
from sparkloom.measure.bench.target import Target
from sparkloom.onnode.now import gauges

How = Literal["sum", "max", "mean", "counter"]
# engine's name -> ours, and how several series (ranks, models) become one figure
NAMES: dict[str, tuple[str, How]] = {
    name: (ours, how) for engine in engines.measured() for name, (ours, how) in engine["gauges"].items()
}
HOW = dict(NAMES.values())
FIRST_S, EVERY_S = 1.0, 5.0
OTHERS = 1.05  # the engine made this much more than was received here: somebody else asks too


def read(page: bytes) -> dict[str, float]:
    """Of whichever engine it is."""
    return gauges.read(page, NAMES)


class _Look:
    """One GET /metrics as an exchange of the loop; what goes wrong with it is no failure of the measurement."""

    def __init__(self, target: Target, then: Callable[[dict[str, float]], None]) -> None:
        self.payload = target.message("GET", "/metrics")
        self.over = False
        self._response, self._then, self._begun = Response(), then, 0.0
        self._came, self._pieces = list[bytes](), list[bytes]()

    @property
    def reusable(self) -> bool:
        return self._response.done and self._response.keep_alive and not self._response.left

    def sent(self, now: float, connect_s: float, *, again: bool) -> None:
        self._begun = now

    def feed(self, data: bytes, at: float) -> bool:
        self._came.append(data)
        return True

    def waits(self, now: float) -> bool:
        return False

    def read(self) -> None:
        try:
            self._pieces += self._response.feed(b"".join(self._came))
        except Garbled:
            self.over = True
        self._came.clear()
        self.over = self.over or self._response.done

    def closed(self, at: float, why: str) -> None:
        self._response.close()
        self.over = True

    def lost(self, kind: str, detail: str, at: float) -> None:
        self.over = True

    def expired(self, now: float) -> None:
        self.over = now - self._begun > EVERY_S

    def ended(self) -> None:
        if self._response.done and self._response.status == 200:
            self._then(read(b"".join(self._pieces)))


class Gauges:
    """The engine's own figures over one level. `problem` says why there are none."""

    def __init__(self, target: Target) -> None:
        self.target, self.problem = target, ""
        self._before: dict[str, float] = {}
        self._during: list[dict[str, float]] = []
        self._watching = False

    def begin(self, loop: Loop) -> None:
        self._before, self._during = self._page(), []
        if self.problem:
            return
        self._watching = True
        loop.at(loop.now() + FIRST_S, lambda: self._look(loop))

    def _look(self, loop: Loop) -> None:
        if self._watching:
            loop.submit(_Look(self.target, self._during.append))
            loop.at(loop.now() + EVERY_S, lambda: self._look(loop))

    def end(self, received: int) -> dict[str, Any]:
        """What the level's row keeps."""
        self._watching = False
        after = self._page() if not self.problem else {}
        if self.problem:
            return {"metrics": f"none: {self.problem}", "accept_length": None}
        grown = {
            name: after[name] - self._before.get(name, 0.0)
            for name in after
            if HOW[name] == "counter" and after[name] >= self._before.get(name, 0.0)
        }
        shown = {
            name: {"mean": round(fmean(values), 4), "max": round(max(values), 4)}
            for name, how in HOW.items()
            if how != "counter" and (values := [page[name] for page in self._during if name in page])
        }
        found: dict[str, Any] = {"metrics": "ok", "looks": len(self._during), **shown}
        found |= {name: round(value, 1) for name, value in grown.items()}
        found["accept_length"] = self._accepted(grown)
        if received and grown.get("generated", 0.0) > OTHERS * received + 64:
            found["note"] = f"the engine made {grown['generated']:.0f} tokens, {received} of them for this level"
        return found

    def _accepted(self, grown: dict[str, float]) -> float | None:
        """Tokens per verification: the draft tokens accepted, and the one that always comes."""
        if grown.get("drafts"):
            return round(1 + grown.get("accepted", 0.0) / grown["drafts"], 3)
        seen = [page["accept_length"] for page in self._during if page.get("accept_length", 0.0) > 0]
        return round(fmean(seen), 3) if seen else None

    def _page(self) -> dict[str, float]:
        try:
            status, page = self.target.get("/metrics")
        except (OSError, Garbled) as error:
            self.problem = f"GET /metrics: {error}"
            return {}
        found = read(page) if status == 200 else {}
        if status != 200:
            self.problem = f"GET /metrics answered {status}"
        elif not found:
            self.problem = "GET /metrics holds none of the engines' known names"
        return found
