"""plan(launch, cluster): everything that capacity can say about one launch, each number with its formula and origin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.inputs.profile import Evidence
from sparkloom.judge import profile_status
from sparkloom.judge.beyond import doubt, impossible
from sparkloom.judge.capacity import search
from sparkloom.judge.capacity.search import Change
from sparkloom.judge.capacity.speed import LEVELS, Speed
from sparkloom.launch import engines
from sparkloom.launch.memory.figure import Figure
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.resolve import Launch
from sparkloom.launch.view import ModelView

EAGER = "predicted with CUDA graphs; without them decoding reached 0.66 to 0.75 of it at n = 1"
PIPELINE = (
    "a pipeline is predicted as if its stages overlapped fully; measured ones reach 10 to 45 % less from n = 4 on"
)

# In doubt where what nobody knows of the memory decides: `plan` then neither promises nor refuses.
VERDICTS: dict[bool | None, str] = {True: "fits", None: "uncertain", False: "does-not-fit"}


@dataclass(frozen=True, slots=True)
class Plan:
    fit: Fit
    speed: dict[str, Figure]
    interval: dict[str, tuple[float, float]]  # of each predicted level: from a bad day to a good one
    measured: dict[str, float]
    impossible: tuple[str, ...]  # levels whose measured figure the bound of that launch forbids
    above_ceiling: tuple[str, ...]  # and those above what is expected at best, which is no verdict
    measured_source: str
    change: Change | None

    @property
    def fits(self) -> bool | None:
        return self.fit.fits

    def bound(self, level: int | str) -> float | None:
        figure = self.speed.get(f"bound.{level}")
        return figure.value if figure else None

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `sparkloom plan`, less what the launch and the rules add."""
        return {
            "fits": self.fit.fits,
            "verdict": VERDICTS[self.fit.fits],
            "reason": self.fit.reason,
            "change": self.change.text if self.change else None,
            "change_set": list(self.change.overrides) if self.change else [],
            "notes": list(self.fit.notes),
            "memory": {name: figure.shown for name, figure in self.fit.memory.items()},
            "limits": {name: figure.shown for name, figure in self.fit.limits.items()},
            "speed": self._speed(),
            "explain": self._explain(),
        }

    def _speed(self) -> dict[str, Any]:
        bound = {str(n): _tenth(self.speed[f"bound.{n}"]) for n in LEVELS}
        return {
            "bound_n1_tok_s": bound["1"],
            "bound": bound,
            "ceiling": {str(n): _tenth(self.speed[f"ceiling.{n}"]) for n in LEVELS},
            "predicted": {str(n): _tenth(self.speed[f"predicted.{n}"]) for n in LEVELS},
            "interval": {n: [round(low, 1), round(high, 1)] for n, (low, high) in self.interval.items()},
            "measured": self.measured or None,
            "measured_source": self.measured_source or None,
            "impossible": list(self.impossible),
            "above_ceiling": list(self.above_ceiling),
        }

    def _explain(self) -> dict[str, dict[str, str]]:
        named = {f"memory.{name}": figure for name, figure in self.fit.memory.items()}
        named |= {f"limits.{name}": figure for name, figure in self.fit.limits.items()}
        named |= {f"speed.{name}": figure for name, figure in self.speed.items()}
        return {name: {"formula": figure.formula, "origin": figure.origin} for name, figure in named.items()}


def plan(launch: Launch, cluster: Cluster, platform: Platform = GB10) -> Plan:
    best = profile_status.best_evidence(launch.profile.profile)
    return of_view(launch.view(platform), len(cluster.nodes), best)


def of_view(asked: ModelView, nodes: int, best: Evidence | None = None) -> Plan:
    """`nodes`: how many the inventory has; `best`: what was measured, if anything."""
    fitted = engines.fit(asked)
    fitted = replace(fitted, notes=(*fitted.notes, *_notes(asked)))
    change = search.smallest(asked, nodes) if fitted.fits is not True else None
    measured: dict[str, float] = {}
    beyond: list[str] = []
    above: list[str] = []
    if best and best.status == "measured":
        measured, judged = _numbers(best), Speed(asked.as_measured(best))
        beyond = [n for n, value in measured.items() if impossible(value, judged.bound(int(n)))]
        above = [n for n, value in measured.items() if n not in beyond and doubt(value, judged.ceiling(int(n)))]
    source = best.source if best and measured else ""
    speed = Speed(asked)
    interval = {str(n): span for n in LEVELS if (span := speed.interval(n))}
    return Plan(fitted, speed.figures(), interval, measured, tuple(beyond), tuple(above), source, change)


def _notes(asked: ModelView) -> list[str]:
    notes = [PIPELINE] if asked.parallel.pp > 1 else []
    if engines.requirements(asked).eager:
        notes.append(EAGER)
    return notes


def _numbers(item: Evidence) -> dict[str, float]:
    values = {str(n): getattr(item.numbers, f"n{n}", None) for n in LEVELS}
    return {n: float(value) for n, value in values.items() if value is not None}


def _tenth(figure: Figure) -> float | None:
    return None if figure.value is None else round(float(figure.value), 1)
