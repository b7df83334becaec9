"""How far predictions are from what was measured, apart for what they were fitted to and what was held out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from scripts.docs import speed_rows
from sparkloom.inputs import inventory, profile
from sparkloom.inputs.profile import LoadedProfile, Measured
from sparkloom.judge import profile_status
from sparkloom.judge.capacity import traffic
from sparkloom.judge.capacity.prefill import Prefill
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch import resolve
from sparkloom.launch.view import ModelView

LEVELS = (1, 4, 8, 16)


@dataclass(frozen=True)
class Point:
    """One measured level: of a profile's best evidence, or of a published run."""

    name: str
    speed: Speed
    requests: float
    measured: float
    fitted: bool

    @property
    def nodes(self) -> int:
        return self.speed.view.nodes

    @property
    def what(self) -> tuple[str, int, float, float]:
        """Two points of which this is the same were read off one run."""
        return self.speed.view.model.architecture, self.nodes, self.requests, self.measured

    @property
    def gb(self) -> float:
        stages = self.speed.view.parallel.pp
        return traffic.step_bytes(self.speed.view, self.speed.needs, self.requests / stages) / 1e9

    @property
    def predicted(self) -> float | None:
        return self.speed.predicted(self.requests)

    @property
    def error(self) -> float | None:
        predicted = self.predicted
        return None if predicted is None else predicted / self.measured - 1


SHORTEST = 2048  # a shorter prompt's time is not the prompt's


@dataclass(frozen=True)
class FirstToken:
    """A measured time to the first token of one request alone."""

    name: str
    prefill: Prefill
    tokens: int
    measured: float
    fitted: bool

    @property
    def predicted(self) -> float:
        return self.prefill.seconds(self.tokens)

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def first_tokens() -> tuple[FirstToken, ...]:
    return tuple(
        FirstToken(row.id, Prefill(row.view), tokens, seconds, row.family_fitted)
        for row in speed_rows.shipped()
        for tokens, seconds in row.ttft_s.items()
        if tokens >= SHORTEST
    )


def points() -> tuple[Point, ...]:
    """Each measured level once: a published run may be a row and, since there is a profile of it, its evidence."""
    rows = tuple(_of_rows())
    known = {point.what for point in rows}
    return (*(point for point in _of_profiles() if point.what not in known), *rows)


def _of_profiles() -> Iterator[Point]:
    fitted = speed_rows.fitted_profiles()
    for name in profile.names():
        loaded = profile.load(name)
        best = profile_status.best_evidence(loaded.profile)
        if best is None or best.status != "measured" or best.numbers is None:
            continue
        speed = Speed(facts(loaded).as_measured(best), accepted=best.numbers.accept_length)
        for n in LEVELS:
            if value := getattr(best.numbers, f"n{n}"):
                yield Point(name, speed, float(n), value, name in fitted)


def _of_rows() -> Iterator[Point]:
    for row in speed_rows.shipped():
        speed = Speed(row.view)
        yield from (Point(row.id, speed, level.requests, level.tok_s, row.fitted) for level in row.levels)


def facts(loaded: LoadedProfile) -> ModelView:
    """Without the measured weights: nothing here leans on what it is compared with."""
    view = resolve.resolve(loaded, inventory.load()).view()
    return replace(view, model=view.model.model_copy(update={"measured": Measured()}))


def rms(points: Iterable[Point | FirstToken]) -> float:
    """Root of the mean of the squared relative errors; of points that have a prediction."""
    errors = [point.error for point in points if point.error is not None]
    return math.sqrt(sum(error**2 for error in errors) / len(errors)) if errors else 0.0
