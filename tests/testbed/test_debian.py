"""Packages of another suite: the pinned ones, and no others under their names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from testbed.base import machine
from testbed.base.shell import RackError
from testbed.make.real import debian, llamacpp, vllm


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive as files; dpkg-deb is not asked, the file that it would open is kept."""
    pool = tmp_path / "archive/pool"
    pool.mkdir(parents=True)
    (pool / "a_1_x.deb").write_bytes(b"a package")
    monkeypatch.setattr(debian, "mirror", lambda say: (tmp_path / "archive").as_uri())
    monkeypatch.setattr(debian, "run", lambda words, **_: (tmp_path / "opened").open("a").write(f"{words[2]}\n"))
    return pool


def table(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "packages.txt"
    path.write_text("# a comment\n" + "".join(f"{machine.architecture()} {row}\n" for row in rows))
    return path


def test_a_pinned_package_is_opened(tmp_path: Path, archive: Path) -> None:
    rows = table(tmp_path, f"pool/a_1_x.deb {hashlib.sha256(b'a package').hexdigest()}")
    debian.unpack("forky", rows, tmp_path / "tree", tmp_path, print)
    assert (tmp_path / "opened").read_text().strip() == str(tmp_path / "01-a.deb")


def test_another_content_under_its_name_is_refused_unopened(tmp_path: Path, archive: Path) -> None:
    with pytest.raises(RackError, match=r"a_1_x\.deb of Debian's archive is not what packages\.txt pins"):
        debian.unpack("forky", table(tmp_path, f"pool/a_1_x.deb {'0' * 64}"), tmp_path / "tree", tmp_path, print)
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize("pins", [llamacpp.PINS, vllm.LIBRARIES])
def test_what_is_pinned_is_pinned_for_both_architectures(pins: Path) -> None:
    rows = [line.split() for line in pins.read_text().splitlines() if not line.startswith("#")]
    names = {arch: {path.rsplit("/", 1)[-1].split("_")[0] for of, path, _ in rows if of == arch} for arch, _, _ in rows}
    assert set(names) == {"amd64", "arm64"} and names["amd64"] == names["arm64"]
    assert all(len(sha256) == 64 for _, _, sha256 in rows)
