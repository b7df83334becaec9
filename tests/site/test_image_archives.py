"""Which node is brought which archive, and what is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom.site import image_archives
from sparkloom.site.image_archives import Need
from tests import image_archives as made

ARM, AMD = made.image("arm64"), made.image("amd64")
BOTH = made.index(ARM, AMD)
ENGINE = made.image("arm64", b"engine" * 900)
MULTUS = Need(f"ghcr.io/org/multus:v4@{BOTH.digest}", BOTH.digest, ("spark1", "spark2"), "multus_image")
SERVES = Need("org/engine:1", "", ("spark2",), "profile x")
MACHINES = {"spark1": "arm64", "spark2": "arm64"}
NOTHING: dict[str, Any] = {"spark1": {}, "spark2": {}}


def filled(folder: Path) -> Path:
    made.keep(folder / "a.tar.gz", made.layout(**{"ghcr.io/org/multus:v4": BOTH}))
    made.keep(folder / "b.tar", made.older(ENGINE, "org/engine:1"))
    (folder / "README").write_text("passed over")
    return folder


def refused(folder: Path, need: Need = MULTUS, machine: str = "arm64") -> str:
    rows, brought = image_archives.decide(folder, {"spark1": [need]}, {"spark1": machine})
    (row,) = rows
    assert not brought and row.severity == "error" and row.rule == need.image.partition("@")[0]
    return f"{row.message} | {row.expected} | {row.fix}"


def test_each_node_is_brought_what_it_lacks_once(tmp_path: Path) -> None:
    missing = image_archives.lacking([MULTUS, SERVES], NOTHING)
    rows, brought = image_archives.decide(filled(tmp_path), missing, MACHINES)
    assert rows == []
    named = {node: {Path(one["file"]).name: one["images"] for one in files} for node, files in brought.items()}
    multus = [{"image": MULTUS.image, "digest": BOTH.digest}]
    assert named["spark1"] == {"a.tar.gz": multus}
    assert named["spark2"] == {"a.tar.gz": multus, "b.tar": [{"image": "org/engine:1", "digest": ""}]}


def test_a_second_run_brings_nothing_and_reads_no_archive(tmp_path: Path) -> None:
    """The stick may be gone by then."""
    there = {"tag": BOTH.digest, "digests": [BOTH.digest]}
    held = {"spark1": {MULTUS.image: there}, "spark2": {MULTUS.image: there, SERVES.image: there}}
    missing = image_archives.lacking([MULTUS, SERVES], held)
    assert missing == {} and image_archives.decide(tmp_path / "gone", missing, MACHINES) == ([], {})
    held["spark1"][MULTUS.image] = {"tag": ARM.digest, "digests": [ARM.digest]}
    assert list(image_archives.lacking([MULTUS], held)) == ["spark1"], "the same tag, another image"


def test_an_image_in_no_archive_is_named_with_what_saves_it(tmp_path: Path) -> None:
    """Red before: a warning named the registries, the run went on, and pods hung in ImagePullBackOff."""
    said = refused(tmp_path / "images")
    assert f"in no archive of {tmp_path / 'images'} (no archive there)" in said
    assert f"{BOTH.digest} for arm64 (multus_image)" in said
    name = f"ghcr.io/org/multus@{BOTH.digest}"
    assert f"ctr images pull --platform linux/arm64 {name} && ctr images export --platform linux/arm64" in said
    assert f"skopeo copy --all docker://{name} oci-archive:{tmp_path}/images/multus.tar:ghcr.io/org/multus:v4" in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (made.layout(**{"ghcr.io/org/multus:v4": ARM}), f"a.tar has it as {ARM.digest}"),
        (made.older(ARM, "ghcr.io/org/multus:v4"), "a.tar has it as without a digest, as an older docker saves it"),
        (made.layout(**{"ghcr.io/org/multus:v4": made.index(ARM, AMD, without="arm64")}), "has it for amd64 only"),
        (made.layout(**{"ghcr.io/org/other:v4": ARM}), "there: a.tar"),
    ],
)
def test_an_archive_that_almost_has_it_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    made.keep(tmp_path / "a.tar", data)
    assert said in refused(tmp_path)


def test_a_locked_digest_of_the_engine_is_asked_of_its_archive(tmp_path: Path) -> None:
    locked = Need("org/engine:1", "sha256:" + "0" * 64, ("spark1",), "profile x")
    made.keep(tmp_path / "b.tar", made.layout(**{"docker.io/org/engine:1": ENGINE}))
    assert f"b.tar has it as {ENGINE.digest}" in refused(tmp_path, locked)


def test_one_refusal_for_all_nodes_that_lack_it(tmp_path: Path) -> None:
    missing = image_archives.lacking([MULTUS], NOTHING)
    rows, _ = image_archives.decide(tmp_path, missing, MACHINES)
    assert len(rows) == 1
