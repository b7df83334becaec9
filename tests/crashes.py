"""Exit 70 anywhere makes the whole run red: crash reports of every program that a test starts lie in one folder.

A test that crashes something on purpose gives it a folder of its own: XDG_STATE_HOME.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

STATE = "XDG_STATE_HOME"
_folder = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a lane's own process has the folder by its environment
        config.stash[_folder] = Path(tempfile.mkdtemp(prefix="sparkloom-state-"))
        os.environ[STATE] = str(config.stash[_folder])


def pytest_sessionfinish(session: pytest.Session) -> None:
    folder = session.config.stash.get(_folder, None)
    if folder is None:
        return
    reports = sorted((folder / "sparkloom" / "crashes").glob("*.txt"))
    if not reports:
        shutil.rmtree(folder)
        return
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
    for report in reports:
        command, _, rest = report.read_text().removeprefix("$ ").partition("\nsparkloom ")
        print(f"\nEXIT 70, a crash of ours: {rest.splitlines()[-1]}\nreproduce: {command}\n  {report}")
