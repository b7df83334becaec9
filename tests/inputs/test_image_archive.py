"""What an archive of images holds, in every form that people save one."""

from __future__ import annotations

import json
import shutil
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import image_archive
from sparkloom.inputs.image_archive import Image
from tests import image_archives as made

NAME = "ghcr.io/some-org/multus:v4"
ARM, AMD = made.image("arm64"), made.image("amd64")
BOTH = made.index(ARM, AMD)
ONE = made.index(ARM, AMD, without="amd64")
ZSTD = pytest.param(".tar.zst", marks=pytest.mark.skipif(not shutil.which("zstd"), reason="needs zstd"))


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ZSTD])
def test_an_archive_is_read_however_it_is_compressed(tmp_path: Path, suffix: str) -> None:
    path = made.keep(tmp_path / f"a{suffix}", made.of([(BOTH, {made.NAME: NAME, made.REF: "v4"})]))
    assert image_archive.read(path) == [Image((NAME,), BOTH.digest, ("arm64", "amd64"))]


@pytest.mark.parametrize(
    ("data", "image"),
    [
        (made.of([(ONE, {made.NAME: NAME})]), Image((NAME,), ONE.digest, ("arm64",))),  # ctr images export --platform
        (made.of([(ARM, {made.REF: NAME})]), Image((NAME,), ARM.digest, ("arm64",))),  # skopeo with a name
        (made.of([(ARM, {made.REF: "v4"})]), Image((), ARM.digest, ("arm64",))),  # and with a tag alone
        (made.of([(ARM, {})]), Image((), ARM.digest, ("arm64",))),
        (made.of([(ARM, {made.NAME: f"{NAME}@{ARM.digest}"})]), Image((NAME,), ARM.digest, ("arm64",))),
        (made.of([(ARM, {made.NAME: f"ghcr.io/some-org/multus@{ARM.digest}"})]), Image((), ARM.digest, ("arm64",))),
        (made.older(ARM, NAME), Image((NAME,), "", ("arm64",))),
        (made.older(ARM, "an_engine:1"), Image(("docker.io/library/an_engine:1",), "", ("arm64",))),
    ],
)
def test_names_digest_and_machines_are_those_that_a_pod_asks_by(tmp_path: Path, data: bytes, image: Image) -> None:
    assert image_archive.read(made.keep(tmp_path / "a.tar", data)) == [image]


def test_a_layer_that_is_not_there_makes_no_image(tmp_path: Path) -> None:
    manifest = json.loads(ARM.blobs[ARM.digest])
    blobs = {name: data for name, data in ARM.blobs.items() if name != manifest["layers"][0]["digest"]}
    path = made.keep(tmp_path / "a.tar", made.of([(made.Made(blobs, ARM.top), {made.NAME: NAME})]))
    assert image_archive.read(path)[0].machines == ()


def test_a_manifest_under_another_digest_is_refused(tmp_path: Path) -> None:
    """Else a pin would be met by whatever calls itself so."""
    forged = made.Made({**ARM.blobs, AMD.digest: ARM.blobs[ARM.digest]}, AMD.top)
    path = made.keep(tmp_path / "a.tar", made.of([(forged, {made.NAME: NAME})]))
    with pytest.raises(InputError, match="is not what its name says; copy the archive again"):
        image_archive.read(path)


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ZSTD])
def test_an_archive_that_was_cut_off_is_refused_by_name(tmp_path: Path, suffix: str) -> None:
    path = made.keep(tmp_path / f"a{suffix}", made.of([(BOTH, {made.NAME: NAME})]))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"a\.tar.*no (whole )?archive of images"):
        image_archive.read(path)


@pytest.mark.parametrize("data", [b"", b"no tar at all", made.tar({"a": b"b"})])
def test_what_is_no_archive_of_images_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    with pytest.raises(InputError, match="archive of images"):
        image_archive.read(path)


def test_without_zstd_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"install zstd, or unpack it elsewhere: zstd -d .*a\.tar\.zst"):
        image_archive.read(tmp_path / "a.tar.zst")


def test_an_engine_of_20_gb_takes_no_memory(tmp_path: Path) -> None:
    """The file is sparse; what counts is that nobody asks for the layer's bytes."""
    path, size = tmp_path / "a.tar", 20_000_000_000
    entry = tarfile.TarInfo(f"blobs/sha256/{'0' * 64}")
    entry.size = size
    with path.open("wb") as file:
        file.write(entry.tobuf(tarfile.GNU_FORMAT))
        file.seek(512 + -(-size // 512) * 512)
        file.write(made.of([(ARM, {made.NAME: NAME})]))
    tracemalloc.start()
    found = image_archive.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [Image((NAME,), ARM.digest, ("arm64",))] and peak < 10_000_000
