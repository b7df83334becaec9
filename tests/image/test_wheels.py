"""The check of a recipe looks at the wheels that the profile's release names, not at those that a patch likes best."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.image import wheels
from sparkloom.onnode.rank.patching import PatchError

CUTLASS = {"id": "c", "package": "nvidia-cutlass-dsl-libs-base", "releases": ["4.4.1", "4.4.2"]}
FLASHINFER = {"id": "f", "package": "flashinfer-python", "releases": ["0.6.7.post2"]}


def unpacked(tmp_path: Path, *needs: str) -> Path:
    info = tmp_path / "sglang-0.5.10/sglang.dist-info"
    info.mkdir(parents=True)
    lines = ["Name: sglang", *(f"Requires-Dist: {need}" for need in needs), "", "Requires-Dist: no-more==1"]
    (info / "METADATA").write_text("\n".join(lines))
    return info.parent


def test_what_a_release_pins_is_looked_at_even_where_a_patch_does_not_know_it(tmp_path: Path) -> None:
    """Before, an unknown release was quietly judged by the newest one of the patch."""
    release = unpacked(tmp_path, "flashinfer_python[cu13]==0.6.12", "nvidia-cutlass-dsl==4.5.0")
    brought: list[tuple[str, str]] = []

    def bring(package: str, version: str) -> Path:
        brought.append((package, version))
        return release

    find = wheels.of("sglang", "0.5.13", bring)
    find(FLASHINFER, "flashinfer")
    assert find(CUTLASS, "cutlass") == release / "nvidia_cutlass_dsl/python_packages/cutlass"
    find({"id": "s", "package": "sglang", "releases": ["0.5.10"]}, "sglang")
    assert [pair for pair in brought if pair != ("sglang", "0.5.13")] == [
        ("flashinfer-python", "0.6.12"), ("nvidia-cutlass-dsl-libs-base", "4.5.0"),
    ]  # fmt: skip
    assert brought[-1] == ("sglang", "0.5.13")


def test_of_a_range_the_newest_that_the_patch_knows(tmp_path: Path) -> None:
    release = unpacked(tmp_path, "nvidia-cutlass-dsl>=4.4.1", "nvidia-cutlass-dsl==9; extra == 'never'")
    assert wheels.asked(release, CUTLASS) == "4.4.2"


@pytest.mark.parametrize(("need", "words"), [("nvidia-cutlass-dsl>=4.6", "asks for nvidia-cutlass-dsl>=4.6"),
                                             ("numpy", "asks for no nvidia-cutlass-dsl")])  # fmt: skip
def test_a_range_beyond_the_patch_is_named(tmp_path: Path, need: str, words: str) -> None:
    with pytest.raises(PatchError, match=words):
        wheels.asked(unpacked(tmp_path, need), CUTLASS)
