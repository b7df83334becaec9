"""Predictions against runs that they were not fitted to; the split of the rows; what was fitted, as the data says."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from scripts.docs import accuracy, speed_rows
from sparkloom.judge.beyond import impossible
from sparkloom.launch.memory import constants
from tests.places import REPO

POINTS = accuracy.points()
HELD_OUT = [point for point in POINTS if not point.fitted and point.error is not None]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fit_speed", REPO / "scripts" / "bench" / "fit_speed.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("nodes", "least"), [(1, 40), (2, 10), (4, 40)])
def test_rows_that_were_held_out_are_within_20_percent_rms(nodes: int, least: int) -> None:
    chosen = [point for point in HELD_OUT if point.nodes == nodes]
    assert len(chosen) >= least
    assert accuracy.rms(chosen) <= 0.20, (nodes, accuracy.rms(chosen))


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_nine_of_ten_held_out_runs_lie_in_the_interval(nodes: int) -> None:
    inside = []
    for point in HELD_OUT:
        span = point.speed.interval(point.requests)
        if point.nodes == nodes and span:
            inside.append(span[0] <= point.measured <= span[1])
    assert sum(inside) >= 0.9 * len(inside), (nodes, sum(inside), len(inside))


def test_no_published_run_is_beyond_its_bound() -> None:
    beyond = [
        (point.name, point.requests)
        for point in POINTS
        if impossible(point.measured, point.speed.bound(point.requests))
    ]
    assert beyond == []


def test_the_split_is_by_family_and_no_held_out_family_is_fitted() -> None:
    rows = speed_rows.shipped()
    assert {row.nodes for row in rows if row.fitted} == {1, 2, 4}
    assert not [row.id for row in rows if row.fitted and "speculative_config" in row.view.flags]
    fitted = {row.view.model.architecture for row in rows if row.fitted}
    fitted |= {point.speed.view.model.architecture for point in POINTS if point.fitted}
    strangers = {"GptOssForCausalLM", "Gemma4ForConditionalGeneration", "LlamaForCausalLM", "Qwen3NextForCausalLM"}
    assert not fitted & strangers
    assert strangers <= {point.speed.view.model.architecture for point in HELD_OUT}


def test_a_run_that_is_a_row_and_evidence_too_counts_once() -> None:
    assert len({point.what for point in POINTS}) == len(POINTS)


def test_every_row_says_who_measured_it_and_where() -> None:
    rows = speed_rows.shipped()
    assert len({row.id for row in rows}) == len(rows) >= 35
    for row in rows:
        assert row.levels and row.source["who"] and re.match(r"[\w.-]+\.\w+", row.source["where"]), row.id
        assert re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", row.source["date"]), row.id
        assert all(level.requests <= level.asked for level in row.levels)


def test_the_constants_are_what_the_fit_finds() -> None:
    fitting = script()
    for names, misfit in ((fitting.DECODING, fitting.decoding()), (fitting.PROMPTS, fitting.prompts())):
        for name, found in zip(names, fitting.fit(names, misfit), strict=True):
            assert getattr(constants, name).value == pytest.approx(found, rel=0.03), name
