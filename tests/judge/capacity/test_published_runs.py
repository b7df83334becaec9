"""Runs that others published, with output that was read: none is beyond the bound, and the guard lets them pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from sparkloom.inputs import profile
from sparkloom.inputs.profile import Model, Parallel
from sparkloom.judge.beyond import impossible
from sparkloom.judge.capacity.speed import Speed
from sparkloom.launch.view import ModelView
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
    view = ModelView("vllm", model=model.model_copy(update={"precision": precision}), flags=run["flags"])
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
    assert sum(share > 1 for share in above) >= 6 and max(above) > 1.4
