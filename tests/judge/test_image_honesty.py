"""Whose image is it: one that everybody can pull, one that is built, one that only its owner has."""

from __future__ import annotations

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import families, image_recipes, inventory, profile
from sparkloom.inputs.image_recipes import HOST
from sparkloom.judge import rules
from sparkloom.judge.rules.base import case
from sparkloom.launch.resolve import resolve

RULES = {
    "image-nobody-has", "image-built-here", "image-recipe-differs", "image-recipe-unpinned", "moving-tag",
    "tag-without-version",
}  # fmt: skip


def said(image: str, built_from: str = "") -> list[str]:
    return sorted(rule.id for rule in rules.fired(case(image=image, built_from=built_from)) if rule.id in RULES)


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("vllm/vllm-openai:v0.33.0", []),
        ("docker.io/vllm/vllm-openai:v0.24.0-ubuntu2404", []),
        ("nvcr.io/nvidia/vllm:26.06-py3", []),
        ("scitrera/dgx-spark-vllm-jasl-ds4:20260609", []),
        ("scitrera/dgx-spark-sglang:0.5.9-dev2-acab24a7-t5", []),
        ("vllm/vllm-openai:nightly-8a728663c1c3eeace834a95f5654fa653cc1998c", []),
        ("ghcr.io/ggml-org/llama.cpp:full-cuda-b8399", []),
        ("lmsysorg/sglang:qwen38-27b", ["tag-without-version"]),
        ("lmsysorg/sglang:qwen38-27b@sha256:0", []),
        ("aidendle94/sparkrun-vllm-ds4-gb10:production-ready", ["tag-without-version"]),
        ("ghcr.io/spark-arena/dgx-vllm-eugr-nightly:latest", ["moving-tag"]),
        ("vllm/vllm-openai", ["moving-tag"]),
        ("lmsysorg/sglang:dev", ["moving-tag"]),
        ("localhost/sparkloom/llama.cpp:b8399-sm121", ["image-nobody-has"]),
        (f"{HOST}/llama.cpp:b8399-sm121", ["image-nobody-has"]),
        ("minimax-m3-awq:tp4-sm121", ["image-nobody-has", "tag-without-version"]),
        ("vllm-dspark-runtime:dspark-nvfp4-stage-c", ["image-nobody-has", "tag-without-version"]),
        ("docker.io/blivioniag/sglang:dev-v4f-2dgx-v2-patched-v3_patch001", ["image-nobody-has"]),
    ],
)
def test_an_image_is_told_by_its_name(image: str, found: list[str]) -> None:
    assert said(image) == found


def test_a_recipe_makes_a_local_name_honest() -> None:
    assert said("vllm-node-b12x", "eugr/spark-vllm-docker, --exp-b12x") == ["image-built-here"]
    assert said("vllm-node:latest", "eugr/spark-vllm-docker") == ["image-built-here"], "what one builds does not move"


def judged(name: str, *overrides: str) -> list[str]:
    launch = resolve(profile.load(name, overrides=overrides), inventory.load())
    return sorted(rule.id for rule in rules.fired(launch.view()) if rule.id in RULES)


def test_no_shipped_profile_has_an_image_that_nobody_can_pull_or_build() -> None:
    for name in profile.names():
        assert "image-nobody-has" not in judged(name), name


LLAMA = "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"


def test_a_recipe_of_ours_makes_an_image_honest_and_must_be_of_the_profile_s_release() -> None:
    assert judged(LLAMA) == ["image-built-here"]
    assert judged(LLAMA, "engine.release=b8400") == ["image-built-here", "image-recipe-differs"]
    assert judged(LLAMA, f"engine.image={HOST}/llama.cpp:b8400") == ["image-built-here", "image-recipe-differs"]
    used = {profile.load(name).profile.engine.recipe for name in profile.names()} - {None}
    assert used and used <= set(image_recipes.names())


def test_a_recipe_that_is_not_there_is_refused_where_the_profile_names_it() -> None:
    with pytest.raises(InputError, match=r"--set engine\.recipe=none.*no such recipe"):
        judged(LLAMA, "engine.recipe=none")


def test_a_cache_in_bytes_is_no_slipped_digit() -> None:
    flags = profile.load("nvidia--glm-5.3-flash-nvfp4").profile.launch.flags
    assert flags["kv_cache_memory_bytes"] == 4445787956


def test_a_small_sibling_is_not_weighed_as_the_large_one() -> None:
    assert families.family("nvidia/GLM-5-NVFP4").facts.weights_gib
    assert not families.family("nvidia/GLM-5.3-Flash-NVFP4").facts.weights_gib
