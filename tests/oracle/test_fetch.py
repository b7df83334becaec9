"""Fetching keeps Python files only, is all or nothing, and says what went wrong."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scripts.oracle import fetch


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def make_wheel(folder: Path, version: str) -> None:
    info = f"sglang-{version}.dist-info"
    with zipfile.ZipFile(folder / f"sglang-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr("sglang/__init__.py", "")
        archive.writestr("sglang/srt/server_args.py", "x = 1\n")
        archive.writestr("sglang/kernels.so", b"\0" * 1000)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def test_only_python_files_are_kept_and_the_wheel_is_gone(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels, "9.9.9")
    said: list[str] = []
    target = fetch.fetch("sglang", "9.9.9", tmp_path / "cache", said.append)
    kept = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    assert kept == ["sglang-9.9.9.dist-info/METADATA", "sglang/__init__.py", "sglang/srt/server_args.py"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["sglang-9.9.9"]
    assert len(said) == 2


def test_a_fetched_release_is_not_fetched_again(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels, "9.9.9")
    fetch.fetch("sglang", "9.9.9", tmp_path / "cache")
    (wheels / "sglang-9.9.9-py3-none-any.whl").unlink()
    said: list[str] = []
    fetch.fetch("sglang", "9.9.9", tmp_path / "cache", said.append)
    assert said == []


def test_an_absent_release_is_refused_in_pips_words_and_leaves_nothing(wheels: Path, tmp_path: Path) -> None:
    with pytest.raises(fetch.FetchError, match=r"No matching distribution found for sglang==9.9.9") as refusal:
        fetch.fetch("sglang", "9.9.9", tmp_path / "cache")
    assert "pip config list" in str(refusal.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_engine_without_wheels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fetch.FetchError, match="expected one of: sglang, vllm"):
        fetch.fetch("llamacpp", "b8399", tmp_path)


def test_changed_pins_need_a_new_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = fetch.dependency_dir("sglang", tmp_path)
    monkeypatch.setitem(fetch.REAL_DEPENDENCIES, "sglang", ("msgspec==0.0.1",))
    assert fetch.dependency_dir("sglang", tmp_path) != before
