"""What the engine says of itself on /metrics, under the names of each engine: before, during and after a level."""

from __future__ import annotations

import contextlib
import json
import threading
from statistics import fmean
from typing import Any, Literal

from sparkloom.launch import engines
from sparkloom.measure.bench.http1 import Garbled
from sparkloom.measure.bench.target import Target
from sparkloom.onnode import prometheus

How = Literal["sum", "max", "mean", "counter"]
# engine's name -> ours, and how several series (ranks, models) become one figure
NAMES: dict[str, tuple[str, How]] = {
    name: (ours, how) for engine in engines.measured() for name, (ours, how) in engine["gauges"].items()
}
HOW = dict(NAMES.values())
PAGE = "/page/data/status.json"  # of a site: behind the same address and key as its models
FIRST_S, EVERY_S = 1.0, 5.0
OTHERS = 1.05  # the engine made this much more than was received here: somebody else asks too


def read(page: bytes) -> dict[str, float]:
    """Of whichever engine it is."""
    return prometheus.figures(page, NAMES)


class Gauges:
    """The engine's own figures over one level, by a thread that looks now and then. `problem`: why there are none."""

    def __init__(self, target: Target) -> None:
        self.target, self.problem = target, ""
        self._before: dict[str, float] = {}
        self._during: list[dict[str, float]] = []
        self._over = threading.Event()

    def begin(self) -> None:
        self._before, self._during, self._over = self._page(), [], threading.Event()
        if not self.problem:
            threading.Thread(target=self._watch, args=(self._during, self._over), daemon=True).start()

    def _watch(self, during: list[dict[str, float]], over: threading.Event) -> None:
        """What goes wrong with a look is no failure of the measurement."""
        pause = FIRST_S
        while not over.wait(pause):
            pause = EVERY_S
            with contextlib.suppress(OSError, Garbled):
                status, page = self.target.get("/metrics", EVERY_S)
                if status == 200:
                    during.append(read(page) | self._gpus())

    def _gpus(self) -> dict[str, float]:
        """The slowest clock and the highest temperature of the Sparks that serve, where a page tells them."""
        with contextlib.suppress(OSError, Garbled, ValueError, KeyError, TypeError):
            status, page = self.target.get(PAGE, EVERY_S)
            told = [node["now"] for node in json.loads(page)["nodes"] if node["groups"]] if status == 200 else []
            return {"mhz": min(now["hertz"] for now in told) / 1e6, "celsius": max(now["celsius"] for now in told)}
        return {}

    def end(self, received: int) -> dict[str, Any]:
        """What the level's row keeps."""
        self._over.set()
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
        if gpus := [page for page in self._during if "mhz" in page]:
            found["gpus"] = {"mhz": min(p["mhz"] for p in gpus), "celsius": max(p["celsius"] for p in gpus)}
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
