"""Runs that others published, with output that was read: none is beyond the bound, and the guard lets them pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from sparkloom.inputs import profile
from sparkloom.inputs.profile import Model, Parallel
from sparkloom.judge.beyond import impossible
from sparkloom.judge.capacity import Speed, traffic
from sparkloom.launch.memory import constants
from sparkloom.launch.view import LaunchView
from sparkloom.measure.guard import judge_batch
from tests.places import DATA

PUBLISHED: dict[str, Any] = yaml.safe_load((DATA / "published_runs.yml").read_text(encoding="utf-8"))


def speed(run: dict[str, Any]) -> Speed:
    shipped = "profile" in run
    model = (
        profile.load(run["profile"]).profile.model
        if shipped
        else Model.model_validate(PUBLISHED["models"][run["model"]])
    )
    precision = model.precision.model_copy(update=run.get("precision", {}))
    parallel = Parallel(nodes=run["ranks"], tp=run["ranks"], pp=1, ep=1)
    view = LaunchView("vllm", profiled=model.model_copy(update={"precision": precision}), flags=run["flags"])
    return Speed(view.split(parallel))


def points() -> Iterator[tuple[str, Speed, int, float]]:
    for run in PUBLISHED["runs"]:
        for n, value in run["tok_s"].items():
            yield f"{run.get('model') or run['profile']} x{run['ranks']} n={n}", speed(run), n, value


POINTS = list(points())


@pytest.mark.parametrize(("name", "asked", "n", "value"), POINTS, ids=[name for name, *_ in POINTS])
def test_a_sane_run_is_not_called_impossible(name: str, asked: Speed, n: int, value: float) -> None:
    assert not impossible(value, asked.bound(n)), (name, asked.bound(n))
    requests = [{"tokens_per_sec": value / n, "output_tokens": 128, "text": f"answer {i}: {name}"} for i in range(n)]
    judged = judge_batch(requests, bound_tok_s=asked.bound(n), ceiling_tok_s=asked.ceiling(n))
    assert judged["verdict"] == "ok", judged


def test_gpt_oss_is_why_ceiling_and_bound_are_apart() -> None:
    """What is expected of independent tokens, sane runs beat by a fifth and more."""
    above = [value / asked.ceiling(n) for name, asked, n, value in POINTS if "gpt-oss" in name]
    assert sum(share > 1.02 for share in above) >= 5 and max(above) > 1.2


def test_two_sparks_are_predicted_better_than_with_the_time_of_four() -> None:
    """MiniMax in NVFP4: the one of these whose kernels are those that the bandwidth's share was fitted with."""
    name, asked, n, value = POINTS[-1]
    bytes_ = traffic.step_bytes(asked.view, asked.needs, 1) / (0.83 * 273e9)
    as_of_four = n / (bytes_ + traffic.collectives(asked.view) * float(constants.ALL_REDUCE_S.value or 0))
    now = asked.predicted(n)
    assert now is not None and abs(now / value - 1) < 0.06 < abs(as_of_four / value - 1), (name, now, as_of_four)
