"""Where a run keeps its SSH connections; tests/journeys/test_whose_box.py looks for any that are left."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sparkloom.site import connections


def test_a_run_keeps_its_connections_in_a_short_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(connections.ANSIBLE, "")
    monkeypatch.setattr(connections.atexit, "register", lambda *words: None)
    connections.kept_for_this_run()
    folder = Path(os.environ[connections.ANSIBLE])
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len(f"{folder}/{'c' * 40}.{'x' * 16}") < 104
        (folder / "c").touch()
    finally:
        connections.end(folder)
    assert not folder.exists()
