"""plan(launch, cluster): everything that capacity can say about one launch, each number with its formula and origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkloom.capacity import search, subject
from sparkloom.capacity.figure import Figure
from sparkloom.capacity.fit import Fit
from sparkloom.capacity.memory import fit
from sparkloom.capacity.search import Change
from sparkloom.capacity.speed import LEVELS, Speed, impossible
from sparkloom.capacity.subject import Subject
from sparkloom.cluster import Cluster
from sparkloom.launch import Launch
from sparkloom.platform import GB10, Platform
from sparkloom.profile import Evidence


@dataclass(frozen=True, slots=True)
class Plan:
    fit: Fit
    speed: dict[str, Figure]
    measured: dict[str, float]
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
            "predicted": {str(n): _tenth(self.speed[f"predicted.{n}"]) for n in LEVELS},
            "measured": self.measured or None,
            "measured_source": self.measured_source or None,
            "impossible": [n for n, value in self.measured.items() if impossible(value, self.bound(n))],
        }

    def _explain(self) -> dict[str, dict[str, str]]:
        named = {f"memory.{name}": figure for name, figure in self.fit.memory.items()}
        named |= {f"limits.{name}": figure for name, figure in self.fit.limits.items()}
        named |= {f"speed.{name}": figure for name, figure in self.speed.items()}
        return {name: {"formula": figure.formula, "origin": figure.origin} for name, figure in named.items()}


def plan(launch: Launch, cluster: Cluster, platform: Platform = GB10) -> Plan:
    asked = subject.of(launch, platform)
    evidence = best_evidence(launch.profile.profile.evidence)
    measured, source = ({}, "") if evidence is None else (_numbers(evidence), evidence.source)
    return of_subject(asked, len(cluster.nodes), measured, source)


def of_subject(asked: Subject, nodes: int, measured: dict[str, float] | None = None, source: str = "") -> Plan:
    fitted = fit(asked)
    change = search.smallest(asked, nodes) if fitted.fits is False else None
    return Plan(fitted, Speed(asked).figures(), measured or {}, source, change)


def best_evidence(evidence: list[Evidence]) -> Evidence | None:
    """The measurement with the highest throughput at the most requests."""
    rated = [item for item in evidence if item.status == "measured" and item.numbers and _numbers(item)]
    return max(rated, key=lambda item: (_rank(item, "n8"), _rank(item, "n4"), _rank(item, "n1")), default=None)


def _rank(item: Evidence, level: str) -> float:
    return float(getattr(item.numbers, level, None) or 0)


def _numbers(item: Evidence) -> dict[str, float]:
    values = {str(n): getattr(item.numbers, f"n{n}", None) for n in LEVELS}
    return {n: float(value) for n, value in values.items() if value is not None}


def _tenth(figure: Figure) -> float | None:
    return None if figure.value is None else round(float(figure.value), 1)
