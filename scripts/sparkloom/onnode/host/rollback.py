"""The way back from a change of the network: files as they were last proven, and a timer that puts them there.

A timer of the init system, not of this process: it fires even when nobody can log in any more.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from sparkloom.onnode.host.backup import File, put, read
from sparkloom.onnode.task import Task

UNIT = "sparkloom-netplan-rollback"
KEPT = Path("/var/lib/sparkloom/rollback")
NOTE = "the node stopped answering after a change of netplan; what was before is back"


def _place(path: Path) -> Path:
    return KEPT / str(path).strip("/").replace("/", "!")


def _script() -> Path:
    return KEPT.with_name("rollback.sh")


def proven(task: Task) -> None:
    """The node was reached: the timer ends, and with it what it would have put back."""
    code, _, _ = task.run_command(["systemctl", "is-active", "--quiet", f"{UNIT}.timer"])
    if code == 0:
        task.run_command(["systemctl", "stop", f"{UNIT}.timer"], check_rc=True)
    shutil.rmtree(KEPT, ignore_errors=True)
    _script().unlink(missing_ok=True)


def keep(task: Task, paths: Iterable[Path]) -> None:
    """Each file as it was last proven, empty for none: an earlier change without its proof does not replace it.

    That one's timer is stopped first, or it would take the kept files away.
    """
    task.run_command(["systemctl", "stop", f"{UNIT}.timer"])  # most often there is none
    KEPT.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in paths:
        if not _place(path).exists():
            put(_place(path), read(path) or File(b""))


def arm(task: Task, seconds: int, then: Iterable[str]) -> None:
    """After the files were written, before they are applied: a timer that is faster would put nothing back."""
    script, lines = _script(), []
    for kept in sorted(KEPT.iterdir()):
        path = Path("/" + kept.name.replace("!", "/"))
        here, there, folder = (shlex.quote(str(place)) for place in (kept, path, path.parent))
        lines.append(f"if [ -s {here} ]; then mkdir -p {folder}; cp -p {here} {there}; else rm -f {there}; fi")
    lines += [f"rm -rf {KEPT} {script}", *then, f"logger -t sparkloom {shlex.quote(NOTE)}"]
    # In a file of its own: systemd 252 mangles a semicolon in a command that a transient timer is to start.
    script.write_text("\n".join(lines) + "\n")
    command = ["systemd-run", f"--unit={UNIT}", f"--on-active={seconds}", "--timer-property=AccuracySec=1s"]
    task.run_command([*command, "--collect", "/bin/sh", str(script)], check_rc=True)
