"""Running programs: one way, with an error that says what failed and shows its last lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# Mounts and processes that end with the command, even when it is killed: unshare itself ignores TERM.
APART = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


class RackError(Exception):
    """Something a person can act on; printed without a traceback."""


def answer(command: Callable[[], int], log: Path) -> int:
    """A command's exit status; what went wrong is one line, and only a bug of ours fills the log."""
    try:
        return command()
    except RackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyError, ValueError, OSError) as error:  # a bug here, or a machine unlike those we know
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(traceback.format_exc())
        print(f"error: unexpected {type(error).__name__}: {error} (details: {log})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; what is built is kept: type the same command again to go on", file=sys.stderr)
        return 130


def run(
    argv: Sequence[str | Path],
    *,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    check: bool = True,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run to the end; output is captured, or appended to `log` where it is long."""
    args = [str(a) for a in argv]
    environ = {**os.environ, **env} if env else None
    try:
        if log is None:
            done = subprocess.run(
                args, capture_output=True, text=True, env=environ, cwd=cwd, input=stdin, timeout=timeout
            )
        else:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("a") as sink:
                sink.write(f"$ {' '.join(args)}\n")
                sink.flush()
                leashed = [*_leash(args[0]), *args]
                done = subprocess.run(
                    leashed, stdout=sink, stderr=sink, text=True, env=environ, cwd=cwd, input=stdin, timeout=timeout
                )
    except FileNotFoundError:
        raise RackError(f"`{args[0]}` was not found on PATH, needed for: {' '.join(args)[:200]}") from None
    except subprocess.TimeoutExpired:
        raise RackError(f"no answer in {timeout:.0f} s: {' '.join(args)[:200]}") from None
    if check and done.returncode:
        raise RackError(f"exit {done.returncode}: {' '.join(args)[:300]}\n{_tail(done, log)}")
    return done


def _leash(program: str) -> list[str]:
    """Long work ends with this command, even when that one is killed: no compiler is left behind at full speed."""
    known = shutil.which(program) and shutil.which("setpriv")
    return ["setpriv", "--pdeathsig", "TERM"] if known else []


def out(argv: Sequence[str | Path], *, check: bool = True, timeout: float | None = None) -> str:
    """What the program printed, stripped."""
    return run(argv, check=check, timeout=timeout).stdout.strip()


def ok(argv: Sequence[str | Path], timeout: float | None = 20) -> bool:
    """Whether the program ends with 0 (a missing program or no answer counts as no)."""
    try:
        return run(argv, check=False, timeout=timeout).returncode == 0
    except RackError:
        return False


def _tail(done: subprocess.CompletedProcess[str], log: Path | None, lines: int = 15) -> str:
    text = log.read_text(errors="replace") if log else (done.stdout or "") + (done.stderr or "")
    shown = "\n".join("  | " + line for line in text.strip().splitlines()[-lines:])
    return shown + (f"\n  whole log: {log}" if log else "")
