"""What is installed is pinned, and each version stands in one place."""

from __future__ import annotations

import re

import pytest
import yaml

from sparkloom.site.checks import gpus
from testbed.base import names
from testbed.make import envoy
from tests.places import REPO

VERSIONS = REPO / "inventories/gb10/group_vars/all/versions.yml"
IMAGES = {key: value for key, value in yaml.safe_load(VERSIONS.read_text()).items() if key.endswith("_image")}
NO_DIGEST = {"gateway_router_image"}  # its digest was not to be had where its tag was written
TAGGED = re.compile(r"[\w./-]+:v\d+\.\d+\.\d+")
PINNED = re.compile(r"[\w./-]+:v?\d[\w.-]+@sha256:[0-9a-f]{64}")


def test_there_are_images() -> None:
    assert {"multus_image", "gpu_runtime_image"} <= set(IMAGES)


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_has_a_tag_to_read_and_a_digest_to_hold(name: str) -> None:
    wanted = TAGGED if name in NO_DIGEST else PINNED
    assert wanted.fullmatch(IMAGES[name]), IMAGES[name]


def test_other_inventories_have_no_copy() -> None:
    for path in REPO.glob("inventories/*/group_vars/all/versions.yml"):
        other = yaml.safe_load(path.read_text())
        assert path.resolve() == VERSIONS or all("{{" in other[name] for name in IMAGES), path


def test_no_role_has_a_copy() -> None:
    for path in REPO.glob("roles/*/defaults/main.yml"):
        assert not [value for value in IMAGES.values() if value.partition(":")[0] in path.read_text()], path


def test_the_rack_packs_the_same_releases_under_the_same_names() -> None:
    packed = yaml.safe_load((REPO / "inventories/kind/group_vars/sparks.yml").read_text())
    assert packed == {name: value.partition("@")[0] for name, value in IMAGES.items() if name in packed}
    assert packed["multus_image"] == f"{names.MULTUS_REPOSITORY}:{names.MULTUS}-thick"
    assert packed["gpu_runtime_image"] == names.GPU_PLUGIN_IMAGE
    assert packed["page_image"] == names.PYTHON_IMAGE


def test_the_router_is_the_one_that_the_tests_run() -> None:
    assert IMAGES["gateway_router_image"].partition("@")[0] == envoy.IMAGE


def test_the_device_plugin_is_one_that_runs_on_a_gb10() -> None:
    found = re.search(r":v(\d+)\.(\d+)\.(\d+)", IMAGES["gpu_runtime_image"])
    assert found and tuple(map(int, found.groups())) >= gpus.OLDEST
