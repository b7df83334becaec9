"""A command that runs below this program, and never outlives it.

It has a process group of its own, so that Ctrl-C reaches this program first; the kernel ends it when this program is
killed; and it inherits a lock, so that whoever comes next can wait until it is really gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from sparkloom.base.errors import InputError

LOOK_S = 0.2
PATIENCE_S = 20.0  # from being asked to end to being killed
PR_SET_PDEATHSIG = 1


Process = subprocess.Popen[bytes]


class Stopped(Exception):
    """This program was asked to end; the command has ended."""


class Outcome(NamedTuple):
    """`code` is None where the command took too long and was ended."""

    code: int | None
    seconds: float


def run(
    argv: Sequence[str],
    *,
    log: Path,
    limit_s: float,
    tick: Callable[[float], bool],
    out: Path | None = None,
    env: Mapping[str, str],
    cwd: Path | None = None,
    lock: int,
    end: signal.Signals = signal.SIGTERM,
) -> Outcome:
    """Until it ends, or `limit_s` have passed, or `tick` (called with the seconds so far) says stop.

    What it says goes to `log`; with `out`, standard output goes there. `end` is how it is asked to end early.
    """
    begun = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as log_file, out.open("wb") if out else contextlib.nullcontext(log_file) as output:
        process = _start(argv, output, log_file, lock, env=env, cwd=cwd)
        while process.poll() is None:
            spent = time.monotonic() - begun
            if tick(spent):
                _end(process, end)
                raise Stopped
            if spent > limit_s:
                _end(process, end)
                return Outcome(None, spent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_S)
    return Outcome(process.returncode, time.monotonic() - begun)


def _start(argv: Sequence[str], out: IO[bytes], log: IO[bytes], lock: int, **where: Any) -> Process:
    parent = os.getpid()

    def prepare() -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # it was killed before the kernel knew
                os._exit(1)

    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            start_new_session=True,
            pass_fds=[lock],
            preexec_fn=prepare,
            **where,
        )
    except OSError as error:
        raise InputError.single(
            str(argv[0]), f"cannot be started: {error.strerror or error}", rule="no-program"
        ) from None


def _end(process: Process, how: signal.Signals) -> None:
    """Asks its whole group, and kills what is left of it."""
    for number, patience in ((how, PATIENCE_S), (signal.SIGTERM, PATIENCE_S / 4), (signal.SIGKILL, PATIENCE_S)):
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
        if number is signal.SIGKILL:
            break
    process.wait()
