"""The JSON of `sparkloom plan`: keys that others rely on, and an explanation for every number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkloom import case
from sparkloom.inputs import inventory, profile
from sparkloom.inputs.profile import Evidence, Numbers
from sparkloom.judge.capacity import verdict
from sparkloom.judge.capacity.verdict import of_view
from tests.judge.capacity.conftest import QWEN, SUPER_MTP, ULTRA, resolved

GUIDE = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4--vllm"


def plan(name: str, *overrides: str) -> dict[str, Any]:
    return verdict.plan(resolved(name, *overrides), inventory.load()).as_dict()


@pytest.mark.parametrize("name", profile.names())
def test_every_shipped_profile_fits_and_every_number_is_explained(name: str) -> None:
    data = plan(name)
    if data["fits"] is None:  # what a kit has free decides, and evidence shows that this very launch ran on one
        (said,) = [finding for finding in case.judge(name).findings if finding.rule == "fit-uncertain"]
        assert said.severity == "info" and "On others' Sparks it ran: " in said.message
    else:
        assert data["fits"] is True, data["reason"]
        assert data["change"] is None
    json.dumps(data)
    for section in ("memory", "limits"):
        for key in data[section]:
            told = data["explain"][f"{section}.{key}"]
            assert told["formula"] and told["origin"], key
    for n in ("1", "4", "8"):
        assert data["explain"][f"speed.bound.{n}"]["formula"]
        assert data["explain"][f"speed.predicted.{n}"]["formula"]


def test_the_contract() -> None:
    data = plan(ULTRA)
    assert data["memory"]["weights_gib_per_rank"] == 83.72
    assert isinstance(data["memory"]["kv_tokens"], int)
    assert data["limits"]["max_running_requests"] == 16
    assert data["speed"]["bound_n1_tok_s"] == data["speed"]["bound"]["1"]
    assert set(data["speed"]["predicted"]) == {"1", "4", "8"}
    assert set(data["speed"]["interval"]) == {"1", "4", "8"}
    low, high = data["speed"]["interval"]["1"]
    assert low < data["speed"]["predicted"]["1"] < high
    assert data["verdict"] == "fits"
    assert set(data["speed"]["measured"]) == {"1", "4", "8"}
    assert data["speed"]["measured_source"]
    assert data["speed"]["impossible"] == []


def test_a_refused_plan_names_reason_and_change() -> None:
    data = plan(ULTRA, "launch.mem_fraction_static=0.85")
    assert data["fits"] is False and data["verdict"] == "does-not-fit"
    assert "mem_fraction_static 0.85" in data["reason"]
    assert data["change_set"] == ["launch.mem_fraction_static=0.88"]
    assert plan(ULTRA, *data["change_set"])["fits"] is True


def test_what_limits_is_said_where_the_fit_is_uncertain() -> None:
    data = plan(GUIDE)
    assert data["fits"] is None and data["verdict"] == "uncertain"
    assert data["limits"]["max_running_requests"] == 2 and data["limits"]["longest_request_tokens"] == 262144
    assert data["explain"]["limits.max_running_requests"]["formula"].startswith("where it starts: ")


def test_experts_in_a_width_of_their_own_keep_little_while_a_prompt_is_computed() -> None:
    """NVIDIA's guide for Ultra: a smaller share of the memory is enough, and no more Sparks are."""
    data = plan(GUIDE)
    assert data["change_set"] == ["launch.gpu_memory_utilization=0.82"]
    less = plan(GUIDE, *data["change_set"])
    each = 4 * 8192 + 22 * (5120 / 4 + 2048)  # one up projection, split over four; back in the latent width
    assert less["fits"] is True
    assert less["memory"]["activations_gib"] == pytest.approx(16384 * each * 2 / 2**30, abs=0.01)


def test_two_changes_together_meet_at_any_fraction() -> None:
    """One that is no multiple of five hundredths, too: half as many tokens at once at 0.82, and no eight Sparks."""
    data = plan(GUIDE, "launch.max_num_batched_tokens=40000")
    assert data["change_set"] == ["launch.max_num_batched_tokens=20000", "launch.gpu_memory_utilization=0.82"]
    assert plan(GUIDE, *data["change_set"])["fits"] is True


def test_a_measured_figure_beyond_the_bound_is_called_impossible() -> None:
    asked = resolved(f"{QWEN}--ep4").view()
    reported = Evidence(
        claim="a collapse", status="measured", source="a log", numbers=Numbers(n1=80.0, n4=65.7, n8=156.4)
    )
    speed = of_view(asked, 4, reported).as_dict()["speed"]
    assert speed["impossible"] == ["1"]
    assert speed["above_ceiling"] == ["8"] and speed["ceiling"]["8"] < 156.4 < speed["bound"]["8"]


def test_the_prediction_says_where_its_accept_length_is_from() -> None:
    assert "measured at 3/4" in plan(SUPER_MTP)["explain"]["speed.predicted.1"]["formula"]
    assert "not measured" in plan(f"{QWEN}--mtp")["explain"]["speed.predicted.1"]["formula"]


def test_a_measurement_is_judged_by_the_launch_it_was_made_with() -> None:
    """Speculation allows more than the plain launch: a figure measured with it is not impossible without it."""
    fast = resolved("nvidia--nemotron-3-super-120b-a12b-nvfp4--nospec").view()
    config: dict[str, Any] = {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3}
    n8 = 700.0
    plain = Evidence(claim="x", status="measured", source="a log", numbers=Numbers(n8=n8))
    drafted = plain.model_copy(update={"config": config})
    assert of_view(fast, 4, plain).impossible == ("8",)
    assert of_view(fast, 4, drafted).impossible == ()
