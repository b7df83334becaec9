"""Keys follow contents; an artefact is there whole or not at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from testbed.base import names, store


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(names, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_key_follows_content_name_and_mode(tmp_path: Path) -> None:
    file = tmp_path / "tree" / "a"
    file.parent.mkdir()
    file.write_text("one")
    keys = [store.key_of(["x", file.parent])]
    file.write_text("two")
    keys.append(store.key_of(["x", file.parent]))
    file.chmod(0o755)
    keys.append(store.key_of(["x", file.parent]))
    file.rename(file.with_name("b"))
    keys.append(store.key_of(["x", file.parent]))
    assert len(set(keys)) == len(keys)


def test_key_ignores_what_python_leaves_behind(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    before = store.key_of([tmp_path])
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_bytes(b"bytes")
    assert store.key_of([tmp_path]) == before


def test_key_knows_where_one_part_ends() -> None:
    assert store.key_of(["ab", "c"]) != store.key_of(["a", "bc"])


def test_build_that_fails_leaves_no_artefact_and_can_be_done_again(cache: Path) -> None:
    with pytest.raises(RuntimeError), store.building("step", "k" * 12) as work:
        (work / "half").write_text("half")
        raise RuntimeError
    assert not store.is_built("step", "k" * 12)
    with store.building("step", "k" * 12) as work:
        assert not (work / "half").exists()
        (work / "whole").write_text("whole")
    assert store.is_built("step", "k" * 12)
    assert (store.place("step", "k" * 12) / "whole").read_text() == "whole"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_what_a_killed_build_left_mounted_is_unmounted_and_never_emptied(cache: Path, tmp_path: Path) -> None:
    """A killed debootstrap left /proc mounted in its half tree; a bind mount there could be anybody's data."""
    elsewhere = tmp_path / "some one's data"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    half = cache / f".step-{'k' * 12}.part" / "root fs"
    for name in ("proc", "data"):
        (half / name).mkdir(parents=True)
    subprocess.run(["mount", "-t", "proc", "proc", half / "proc"], check=True)
    subprocess.run(["mount", "--bind", elsewhere, half / "data"], check=True)
    try:
        assert store.mounts_below(cache) == [half / "proc", half / "data"]
        with store.building("step", "k" * 12) as work:
            assert list(work.iterdir()) == []
    finally:
        for name in ("proc", "data"):
            subprocess.run(["umount", half / name], check=False, capture_output=True)
    assert (elsewhere / "kept").read_text() == "kept"


def test_only_two_generations_are_kept_and_other_steps_are_left_alone(cache: Path) -> None:
    for name in ("step", "step-two"):
        for letter in "abc":
            with store.building(name, letter * 12) as work:
                (work / "file").write_text(letter)
    left = sorted(p.name for p in cache.iterdir())
    assert left == [f"step-{'b' * 12}", f"step-{'c' * 12}", f"step-two-{'b' * 12}", f"step-two-{'c' * 12}"]


def test_broken_json_counts_as_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text('{"a": ')
    assert store.read_json(tmp_path / "times.json") == {}
