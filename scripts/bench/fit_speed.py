"""Fits the free constants of the speed model to the rows that are marked for it, and prints how far all rows are.

.venv/bin/python -m scripts.bench.fit_speed

Least squares of log(predicted / measured), every fitted point weighing the same: two constants for decoding, three for
the time to the first token. They are copied by hand into `launch/memory/constants.py`; a test compares those with what
this finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from scripts.docs import accuracy
from sparkloom.judge.capacity.prefill import Prefill
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch.memory import constants
from sparkloom.launch.memory.constants import Figure

DECODING = ("BANDWIDTH_SHARE", "LAYER_S")
PROMPTS = ("BF16_FLOPS", "ATTENTION_FLOPS", "UNPACKED")
FINEST = 2e-3


def put(names: Iterable[str], values: Iterable[float]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(constants, name, Figure(value, "fitted"))


def decoding() -> Callable[[], float]:
    """How far the fitted runs are, asked afresh at each call: a Speed keeps its rate."""
    points = [(point.speed.view, point.requests, point.measured) for point in accuracy.points() if point.fitted]

    def misfit() -> float:
        fresh = ((Speed(view).predicted(requests), measured) for view, requests, measured in points)
        return sum(math.log(now / measured) ** 2 for now, measured in fresh if now)

    return misfit


def prompts() -> Callable[[], float]:
    points = [(point.prefill.view, point.tokens, point.measured) for point in accuracy.first_tokens() if point.fitted]
    return lambda: sum(math.log(Prefill(view).seconds(tokens) / measured) ** 2 for view, tokens, measured in points)


def fit(names: tuple[str, ...], misfit: Callable[[], float]) -> list[float]:
    """One constant up or down at a time, by ever smaller factors; what is shipped is in place again afterwards."""
    shipped = [getattr(constants, name) for name in names]
    values, step = [float(figure.value) for figure in shipped], 0.1

    def cost(tried: list[float]) -> float:
        put(names, tried)
        return misfit()

    best = cost(values)
    while step > FINEST:
        moved = False
        for place in range(len(values)):
            for factor in (1 + step, 1 / (1 + step)):
                tried = [*values[:place], values[place] * factor, *values[place + 1 :]]
                if (now := cost(tried)) < best:
                    values, best, moved = tried, now, True
        step = step if moved else step / 2
    for name, figure in zip(names, shipped, strict=True):
        setattr(constants, name, figure)
    return values


def main() -> None:
    for names, misfit in ((DECODING, decoding()), (PROMPTS, prompts())):
        found = fit(names, misfit)
        put(names, found)
        for name, value in zip(names, found, strict=True):
            print(f"{name:16} {value:.4g}")
    runs = [replace(point, speed=Speed(point.speed.view)) for point in accuracy.points() if point.error is not None]
    for nodes in sorted({point.nodes for point in runs}):
        _say(f"{nodes} Spark(s)", [point for point in runs if point.nodes == nodes])
    fresh = [replace(point, prefill=Prefill(point.prefill.view)) for point in accuracy.first_tokens()]
    _say("first token", fresh)


def _say(what: str, points: list[accuracy.Point] | list[accuracy.FirstToken]) -> None:
    for fitted, kind in ((True, "fitted"), (False, "held out")):
        chosen = [point for point in points if point.fitted is fitted]
        if chosen:
            print(f"{what}, {kind:8}: {len(chosen):3} points, {100 * accuracy.rms(chosen):.1f} % rms")


if __name__ == "__main__":
    main()
