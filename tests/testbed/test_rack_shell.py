"""What a killed command leaves behind: nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.base.shell import APART

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


def lives(mark: str) -> bool:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            return True
    return False


def until(wanted: bool, mark: str) -> bool:
    end = time.monotonic() + 10
    while lives(mark) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return lives(mark) == wanted


def test_what_runs_apart_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    """A debootstrap that went on after its `up` was killed wrote into the tree of the next."""
    mark = f"3600.{os.getpid()}"
    script = f"mount -t tmpfs none {tmp_path}; sleep {mark} & wait"
    call = f"run({[*APART, 'sh', '-c', script]}, log=Path({str(tmp_path / 'log')!r}))"
    program = f"from pathlib import Path; from testbed.base.shell import run; {call}"
    command = subprocess.Popen([sys.executable, "-c", program])
    try:
        assert until(True, mark)
    finally:
        command.kill()
        command.wait()
    assert until(False, mark)
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
