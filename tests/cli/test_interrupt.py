"""Ctrl-C at a moment at which Python cannot raise it."""

from __future__ import annotations

import subprocess
import sys

MET_BY_A_CALLBACK = """
import signal, time, weakref
from sparkloom.cli import program

class Lock: ...

def run():
    lock = Lock()
    ours = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))
    del lock  # as importlib drops the lock of a module
    time.sleep(50)
    print("went on")

program._run = run
program.main()
"""


def test_ctrl_c_that_meets_a_callback_ends_the_command_and_shows_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MET_BY_A_CALLBACK], capture_output=True, text=True, timeout=40, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
