"""On how many Sparks, and how split: every placement is asked whether it fits, and the fastest of those is taken."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sparkloom.inputs.profile import FlagValue, Model, Parallel
from sparkloom.judge.capacity import search
from sparkloom.judge.capacity.speed import LEVELS, Speed
from sparkloom.launch import engines
from sparkloom.launch.memory.fit import Fit
from sparkloom.launch.view import ModelView

COUNTS = (1, 2, 4, 8)  # Sparks that people have together; another number is asked for by name
SHORT = 32_768  # tokens of context, below which fewer Sparks are no gain


@dataclass(frozen=True, slots=True)
class Placement:
    parallel: Parallel
    fit: Fit
    changes: dict[str, FlagValue]  # flags without which it would not fit
    speeds: dict[str, float]

    @property
    def score(self) -> float:
        """Speeds at one, four and eight requests weigh alike."""
        return sum(math.log(max(speed, 1e-3)) for speed in self.speeds.values())

    def as_dict(self) -> dict[str, object]:
        return {
            "parallel": self.parallel.as_dict(),
            "fits": self.fit.fits,
            "reason": self.fit.reason,
            "changes": self.changes,
            "predicted": self.speeds,
        }


def best(view: ModelView, model: Model, nodes: int | None) -> tuple[Placement, list[Placement]]:
    """The fewest Sparks on which it fits (or exactly `nodes`), and all that were asked."""
    asked: list[Placement] = []
    for count in (nodes,) if nodes else COUNTS:
        here = [_asked(view.split(parallel)) for parallel in splits(model, count, view.engine)]
        asked += here
        fitting = [placement for placement in here if placement.fit.fits is True]
        if fitting and (nodes or count == COUNTS[-1] or any(_long(view, each) for each in fitting)):
            return max(fitting, key=lambda each: (each.score, -each.parallel.ep)), asked
    sure = [placement for placement in asked if placement.fit.fits is True]
    maybe = [placement for placement in asked if placement.fit.fits is None]
    for those in (sure, maybe, asked):
        if those:
            return max(those, key=lambda each: (-each.fit.short_gib, each.score)), asked
    raise AssertionError("one Spark is always a placement")


def splits(model: Model, nodes: int, engine: str) -> Iterator[Parallel]:
    """Tensor parallel first; experts dealt whole or cut; a pipeline where heads cannot be split."""
    heads = [model.attention.q_heads, *filter(None, [model.attention.sliding_q_heads])]
    alone = bool(engines.get(engine).alone)
    for tp in range(nodes, 0, -1):
        if nodes % tp or any(count % tp for count in heads) or (alone and nodes > 1):
            continue
        for ep in {1, tp} if model.experts and model.experts.routed % tp == 0 else {1}:
            yield Parallel(nodes=nodes, tp=tp, pp=nodes // tp, ep=ep)


def _asked(view: ModelView) -> Placement:
    fit, changes = engines.fit(view), {}
    if fit.fits is not True and (change := search.within(view)):
        changes = {name: new for name, new in change.view.flags.items() if view.flags.get(name) != new}
        view = change.view
        fit = engines.fit(view)
    speed = Speed(view)
    speeds = {str(n): round(speed.predicted(n) or speed.ceiling(n), 1) for n in LEVELS}
    return Placement(view.parallel, fit, changes, speeds)


def _long(view: ModelView, placement: Placement) -> bool:
    """Whether a request may still be as long as the model can, or at least not short."""
    flag = engines.get(view.engine).called.get("context", "")
    given = placement.changes.get(flag)
    return not isinstance(given, int) or given >= min(SHORT, view.model.context)
