"""A file is whole or not there, and nobody else reads a private one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sparkloom.base import files


def test_what_was_there_stays_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.write(tmp_path / "new" / "file", "before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write(path, "after")
    assert path.read_text() == "before"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_as_asked_whatever_the_umask(mode: int, tmp_path: Path) -> None:
    path = files.write(tmp_path / "file", b"\x00", mode)
    assert stat.S_IMODE(path.stat().st_mode) == mode and list(tmp_path.iterdir()) == [path]
