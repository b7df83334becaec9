"""Images of engines themselves: what they are made of is pinned, and the test bed's profiles name them."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from sparkloom.inputs import profile
from testbed.face.engine import REAL
from testbed.make.real import sglang, vllm
from testbed.standins.hub import tiny


@pytest.mark.parametrize("path", sorted(tiny.PROFILES.glob("*.yml")), ids=lambda path: path.stem)
def test_a_profile_names_the_image_that_is_built(path: Path) -> None:
    engine = profile.load(str(path)).profile.engine
    of_it = {image.reference: image.release for name, image in REAL.items() if name.split("-")[0] == engine.name}
    assert of_it[engine.image] == engine.release


@pytest.mark.parametrize("pins", [sglang.pins(sglang.NEWEST), sglang.pins(sglang.POSTS), vllm.PINS], ids=str)
def test_each_wheel_is_pinned_and_none_is_nvidias(pins: Path) -> None:
    rows = [row for row in pins.read_text().splitlines() if not row.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", row) for row in rows)
    assert not [row for row in rows if row.startswith(("nvidia-", "cuda-"))]


def test_vllm_finds_its_version_and_the_cpu_in_it(tmp_path: Path) -> None:
    """vllm/platforms/__init__.py takes the platform from the version of a package that is called vllm."""
    vllm._named(tmp_path)
    (found,) = metadata.distributions(name="vllm", path=[str(tmp_path)])
    assert found.version == f"{vllm.RELEASE}+cpu"
