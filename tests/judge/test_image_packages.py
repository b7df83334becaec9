"""A package that a flag needs and the image may lack: named by lint, and else by the rank before it loads."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sparkloom import case
from sparkloom.judge.rules.base import LaunchView
from sparkloom.judge.rules.computed import images
from sparkloom.onnode.rank import modules
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.render.manifests import supervision

PROFILE = "chankhavu--nemotron-cascade-2-30b-a3b-nvfp4"
ASKED = "launch.load_format=fastsafetensors"


def found(*overrides: str) -> list[str]:
    return [finding.rule for finding in case.judge(PROFILE, overrides=[ASKED, *overrides]).findings]


def test_an_image_that_is_known_to_lack_the_package_is_refused_before_anything_starts() -> None:
    assert "fastsafetensors-missing" in found()
    assert "fastsafetensors-missing" not in found("engine.carries=[fastsafetensors]")
    assert "fastsafetensors-missing" not in found("engine.image=my-own-build:1"), "unknown is no evidence"


@pytest.mark.parametrize(
    ("image", "release", "carried"),
    [
        ("vllm/vllm-openai:v0.19.1", "0.19.1", False),
        ("docker.io/vllm/vllm-openai:v0.33.0@sha256:0", "0.33.0", True),
        ("scitrera/dgx-spark-sglang:0.5.12", "0.5.12", True),
        ("lmsysorg/sglang:v0.5.12", "0.5.12", False),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc9", "1.3.0rc9", None),
    ],
)
def test_what_is_known_of_an_image(image: str, release: str, carried: bool | None) -> None:
    told = images.known("fastsafetensors", LaunchView("vllm", release=release, image=image))
    assert (told and told["carried"]) is carried


def test_every_entry_has_a_pattern_a_verdict_and_a_source() -> None:
    for entries in images.packages().values():
        assert all(re.compile(entry["image"]) and isinstance(entry["carried"], bool) for entry in entries)
        assert all(len(entry["source"]) > 20 for entry in entries)


def order(**changes: Any) -> GroupPlan:
    launch = case.judge(PROFILE, overrides=[ASKED]).launch
    plan = supervision.plan(launch, "refuse") | {"patterns": json.loads(supervision.patterns(launch.engine))}
    return GroupPlan.of({**plan, **changes})


def test_a_rank_looks_into_its_image_before_the_weights_are_read() -> None:
    here = {"vllm"}
    named = modules.missing(order(), lambda name: name in here)
    assert named.startswith(
        "fastsafetensors-missing: ModuleNotFoundError: No module named 'fastsafetensors', which load"
    )
    assert "fix: leave load_format out" in named
    here.add("fastsafetensors")
    assert modules.missing(order(), lambda name: name in here) == ""


def test_an_engine_in_an_environment_of_its_own_is_not_judged() -> None:
    assert modules.missing(order(), lambda name: False) == ""
    assert modules.missing(order(modules=()), lambda name: name == "vllm") == ""


def test_a_package_that_no_rule_knows_is_named_by_itself() -> None:
    told = modules.missing(
        order(modules=[{"module": "instanttensor", "flag": "load_format instanttensor"}]), "vllm".__eq__
    )
    assert "No module named 'instanttensor', which load_format instanttensor needs in this image" in told
