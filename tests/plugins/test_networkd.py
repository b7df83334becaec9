"""The real networkd of this machine, in network and mount namespaces of its own, says which links a change touches."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = ("unshare", "dbus-daemon", "networkctl", "ip")
STORY = Path(__file__).with_name("networkd_story.py")


def able() -> str:
    """Why it cannot be tried here; empty when it can."""
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if os.geteuid() or missing or not Path("/lib/systemd/systemd-networkd").exists():
        return f"needs root, systemd-networkd and {', '.join(PROGRAMS)}"
    tried = subprocess.run(
        ["unshare", "-m", "-n", "-p", "-f", "ip", "link", "add", "way", "type", "veth"], capture_output=True
    )
    return "" if tried.returncode == 0 else "no namespaces with a veth here"


@pytest.mark.skipif(bool(able()), reason=able() or "can be tried")
def test_the_way_to_the_node_notices_nothing_of_a_change_of_the_rails() -> None:
    namespaces = ["unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc"]
    command = [*namespaces, sys.executable, str(STORY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["first"]["enp1s0f0np0"] > 0, "the rail has its address now"
    assert told["first"]["enP7s7"] == told["again"]["enP7s7"] == 0
    assert told["after units"]["enP7s7"] == 0 < told["after units"]["enp1s0f0np0"], "our units were written before"
    assert told["every file"]["enP7s7"] > 0, "what writes every file anew is noticed: why we do not"
