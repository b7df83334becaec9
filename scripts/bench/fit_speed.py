"""Fits the two free constants of the speed model to the rows that are marked for it, and prints how far all rows are.

.venv/bin/python scripts/bench/fit_speed.py

Least squares of log(predicted / measured), every fitted point weighing the same. The constants are copied by hand into
`launch/memory/constants.py`; a test compares those with what this finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sparkloom.judge.capacity import accuracy
from sparkloom.judge.capacity.accuracy import Point
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.figure import Figure

NAMES = ("BANDWIDTH_SHARE", "LAYER_S")
FINEST = 1e-3


def put(values: list[float]) -> None:
    for name, value in zip(NAMES, values, strict=True):
        setattr(constants, name, Figure(value, "fitted"))


def misfit(points: list[Point]) -> float:
    fresh = (Speed(point.speed.view).predicted(point.requests) for point in points)  # a Speed keeps its rate
    return sum(math.log(now / point.measured) ** 2 for now, point in zip(fresh, points, strict=True) if now)


def descend(values: list[float], cost: Callable[[list[float]], float]) -> list[float]:
    """One constant up or down at a time, by ever smaller factors."""
    best, step = cost(values), 0.1
    while step > FINEST:
        moved = False
        for place in range(len(values)):
            for factor in (1 + step, 1 / (1 + step)):
                tried = [*values[:place], values[place] * factor, *values[place + 1 :]]
                if (now := cost(tried)) < best:
                    values, best, moved = tried, now, True
        step = step if moved else step / 2
    return values


def fit() -> list[float]:
    points = [point for point in accuracy.points() if point.fitted]
    shipped = [getattr(constants, name) for name in NAMES]

    def cost(values: list[float]) -> float:
        put(values)
        return misfit(points)

    found = descend([float(figure.value) for figure in shipped], cost)
    for name, figure in zip(NAMES, shipped, strict=True):
        setattr(constants, name, figure)
    return found


def main() -> None:
    found = fit()
    put(found)
    for name, value in zip(NAMES, found, strict=True):
        print(f"{name:16} {value:.4g}")
    everything = [replace(point, speed=Speed(point.speed.view)) for point in accuracy.points()]
    for nodes in sorted({point.nodes for point in everything}):
        for fitted in (True, False):
            chosen = [p for p in everything if p.nodes == nodes and p.fitted is fitted and p.error is not None]
            if chosen:
                kind = "fitted" if fitted else "held out"
                print(f"{nodes} Spark(s), {kind:8}: {len(chosen):3} points, {100 * accuracy.rms(chosen):.1f} % rms")


if __name__ == "__main__":
    main()
