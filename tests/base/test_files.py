"""A file is whole or not there, and nobody else reads a private one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sparkloom.base import files
from sparkloom.base.errors import full


def test_what_was_there_stays_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.write(tmp_path / "new" / "file", "before")

    def fills(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fills)
    with pytest.raises(OSError, match="No space") as told:
        files.write(path, "after")
    assert path.read_text() == "before"
    said = full(told.value)
    assert said.startswith(f"{path}: No space left on device; `df -h {path.parent}`") and "the same command" in said
    assert full(FileNotFoundError(2, "No such file", "x")) == full(ValueError("x")) == ""


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_as_asked_whatever_the_umask(mode: int, tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", b"\x00", mode)
    assert stat.S_IMODE(path.stat().st_mode) == mode and list(tmp_path.iterdir()) == [path]
