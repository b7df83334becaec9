"""The SSH connections that a run keeps open: in a folder of its own, and ended with the run."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

FOLDER = "/tmp"  # a socket's path has 104 letters at most, of which ssh needs 58: a home can be too long
ANSIBLE = "ANSIBLE_SSH_CONTROL_PATH_DIR"


def kept_for_this_run() -> None:
    folder = Path(tempfile.mkdtemp(prefix="sparkloom-ssh-", dir=FOLDER))  # with mode 0700
    os.environ[ANSIBLE] = str(folder)
    atexit.register(end, folder)


def end(folder: Path) -> None:
    for socket in folder.glob("*"):
        with suppress(OSError, subprocess.TimeoutExpired):
            command = ["ssh", "-F", "none", "-o", f"ControlPath={socket}", "-O", "exit", "of-this-run"]
            subprocess.run(command, capture_output=True, timeout=5)
    shutil.rmtree(folder, ignore_errors=True)
