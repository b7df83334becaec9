"""A scenario is run by the documented command, whatever is on PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.base.shell import RackError
from testbed.face import scenario
from tests.places import REPO


def test_molecule_finds_ansible_though_path_has_none_of_ours() -> None:
    """`.venv/bin/molecule` alone ended in a traceback: No such file or directory: 'ansible-config'."""
    bare = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "testbed", "scenario", "default", "list"]
    done = subprocess.run(command, cwd=REPO, env=bare, capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert "default" in done.stdout


def test_the_shared_rack_stays_and_machines_of_a_scenario_s_own_go() -> None:
    assert "--destroy=never" in scenario.command("fabric", "test", [])
    assert "--destroy=always" in scenario.command("k3s", "test", [])
    assert scenario.command("fabric", "converge", [])[1:] == ["converge", "-s", "fabric"]
    assert Path(scenario.environment()["PATH"].split(os.pathsep)[0]) == Path(sys.executable).parent


def test_an_unknown_scenario_is_named_with_those_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["testbed", "fabrik"])
    with pytest.raises(RackError, match=r"no scenario 'fabrik'; there are .*fabric"):
        scenario.main()
