"""Which images must lie in archives: all that nodes would pull, and no registry of the site gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import lock_file, profile
from sparkloom.site.k3s import judge
from tests.k3s_sites import chosen, site

A, B = ("sha256:" + letter * 64 for letter in "ab")
MULTUS, GPU = f"ghcr.io/org/multus:v4@{A}", f"nvcr.io/nvidia/k8s-device-plugin:v0@{B}"
PROFILE = "nvidia--minimax-m2.5-nvfp4--2node"


def found(
    folder: Path, options: dict[str, Any] | None = None, *, served: str = PROFILE, take: str = "", **ours: str
) -> dict[str, judge.Need]:
    chose = chosen(**{"k3s_artifacts": "/stick", **(options or {})})
    loaded = profile.load(served) if served else None
    engines = [judge.engine(loaded, ["spark1", "spark2"], take, folder / "images.yml")] if loaded else []
    named = {"multus_image": MULTUS, "gpu_runtime_image": GPU, "gateway_router_image": "", **ours}
    return {need.where: need for need in judge.every(chose, site(["box1"], nodes=3), named, engines)}


def test_each_image_is_needed_where_its_pods_run(tmp_path: Path) -> None:
    told = found(tmp_path)
    assert told["multus_image"].nodes == ("box1", "spark1", "spark2", "spark3"), "its daemon runs on every node"
    assert told["gpu_runtime_image"].nodes == ("spark1", "spark2", "spark3")
    engine = told[f"profile {PROFILE}"]
    assert engine.nodes == ("spark1", "spark2") and engine.digest == ""
    assert (told["multus_image"].digest, told["gpu_runtime_image"].digest) == (A, B)


def test_a_site_with_a_router_needs_its_image_on_every_spark(tmp_path: Path) -> None:
    told = found(tmp_path, gateway_router_image="docker.io/envoyproxy/envoy:v1.40.0")["gateway_router_image"]
    assert told.nodes == ("spark1", "spark2", "spark3") and told.digest == ""


def test_the_engine_is_the_one_that_is_locked_or_that_somebody_chose(tmp_path: Path) -> None:
    image = found(tmp_path)[f"profile {PROFILE}"].image
    name, _, tag = image.rpartition(":")
    lock_file.keep(tmp_path / "images.yml", lock_file.Image(name, tag, A, "2026-11-22", "spark1"))
    assert found(tmp_path)[f"profile {PROFILE}"].digest == A
    assert found(tmp_path, take=B)[f"profile {PROFILE}"].digest == B


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"k3s_artifacts": ""}, []),
        ({"k3s_images_from": "registries"}, []),
        ({"k3s_registries": {"mirrors": {"*": {"endpoint": ["https://r.home"]}}}}, []),
        ({"k3s_registries": {"mirrors": {"*": {}}}}, ["ghcr.io", "nvcr.io", "docker.io"]),
        ({"k3s_registries": {"mirrors": {"docker.io": {"endpoint": ["https://r.home"]}}}}, ["ghcr.io", "nvcr.io"]),
    ],
)
def test_what_a_registry_gives_needs_no_archive(tmp_path: Path, options: dict[str, Any], left: list[str]) -> None:
    hosts = {"multus_image": "ghcr.io", "gpu_runtime_image": "nvcr.io", f"profile {PROFILE}": "docker.io"}
    assert [hosts[where] for where in found(tmp_path, options)] == left


def test_a_site_needs_no_image_that_it_does_not_run(tmp_path: Path) -> None:
    assert list(found(tmp_path, multus_image="", gpu_runtime_image="", served="")) == []


def test_an_image_that_is_built_in_the_cluster_is_not_asked_for_before_it(tmp_path: Path) -> None:
    assert (
        list(
            found(
                tmp_path,
                multus_image="",
                gpu_runtime_image="",
                served="unsloth--nemotron-3-ultra-550b-a55b-gguf--2node",
            )
        )
        == []
    )
