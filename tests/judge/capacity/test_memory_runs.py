"""Published launches: none that works is refused; what failed for want of memory is foreseen or called uncertain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from scripts.docs import speed_rows
from sparkloom.inputs import profile
from sparkloom.inputs.platform import GB10
from sparkloom.inputs.profile import Measured, Model, Parallel
from sparkloom.launch.engines import fit
from sparkloom.launch.view import ModelView
from tests.places import DATA

RUNS: list[dict[str, Any]] = yaml.safe_load((DATA / "memory_runs.yml").read_text(encoding="utf-8"))["runs"]
MODELS = yaml.safe_load(speed_rows.FILE.read_text(encoding="utf-8"))["models"]


def view(run: dict[str, Any]) -> ModelView:
    """The launch as it was published; of the model, what is no measurement of ours."""
    model = (
        profile.load(run["profile"]).profile.model if "profile" in run else Model.model_validate(MODELS[run["model"]])
    )
    changed = run.get("precision", {})
    if isinstance(changed, str):
        stored = model.precision.model_dump()
        changed = {part: changed for part, value in stored.items() if value and part != "embedding"}
    size = run.get("size_gb") if "precision" in run else model.checkpoint.size_gb
    packing = "bf16" if run.get("precision") == "bf16" else model.checkpoint.packing
    model = model.model_copy(
        update={
            "precision": model.precision.model_copy(update=changed),
            "checkpoint": model.checkpoint.model_copy(update={"size_gb": size, "packing": packing}),
            "measured": Measured(),
        }
    )
    nodes, free = run["nodes"], run.get("free_gib")
    platform = replace(GB10, measured_free_gib=(free, free)) if free else GB10
    parallel = Parallel(nodes=nodes, tp=run.get("tp", nodes), pp=run.get("pp", 1), ep=run.get("ep", 1))
    release = "0.26.0" if run.get("engine", "vllm") == "vllm" else "0.5.12"
    asked = ModelView(run.get("engine", "vllm"), release, model=model, flags=run["flags"], platform=platform)
    return asked.split(parallel)


def name(run: dict[str, Any]) -> str:
    return f"{run.get('profile') or run['model']} x{run['nodes']} {run['source'][:60]}"


WORK = [run for run in RUNS if run["ends"] == "starts"]
SHORT = [run for run in RUNS if run["ends"] == "short"]


@pytest.mark.parametrize("run", WORK, ids=name)
def test_what_others_serve_is_not_refused(run: dict[str, Any]) -> None:
    plan = fit(view(run))
    assert plan.fits is not False, plan.reason


@pytest.mark.parametrize("row", [row for row in speed_rows.shipped() if row.view.flags], ids=lambda row: row.id)
def test_no_measured_launch_is_refused(row: speed_rows.SpeedRow) -> None:
    plan = fit(row.view)
    assert plan.fits is not False, plan.reason


def test_what_ran_short_of_memory_is_foreseen_or_uncertain() -> None:
    passed = [name(run) for run in SHORT if fit(view(run)).fits]
    assert len(SHORT) >= 10
    assert len(passed) <= 0.2 * len(SHORT), passed


def test_uncertain_is_no_way_out() -> None:
    """A verdict that doubts everything would pass both tests above."""
    sure = [run for run in RUNS if fit(view(run)).fits is not None]
    assert len(sure) >= 0.7 * len(RUNS), [name(run) for run in RUNS if run not in sure]
