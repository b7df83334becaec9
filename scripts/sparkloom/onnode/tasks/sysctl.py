"""Keep kernel settings, now and after a reboot.

Writes one file below /etc/sysctl.d and sets what differs in the running kernel. A key that this kernel does not have,
or does not let this machine set, is reported in `refused` and not a failure. A file that sets one of them otherwise
at every boot, because its name comes later, is warned of by its name. With `remember` the node keeps what was there
before, and `undo` puts exactly that back.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkloom.onnode.host import backup
from sparkloom.onnode.host.kernel import apply, live, overruled
from sparkloom.onnode.task import Data, Task


def remember(path: Path, now: Data) -> None:
    """The file and the values before the first change; keys that a later plan adds join them."""
    backup.keep_file(path)
    kept = backup.load("sysctl", str(path)) or {}
    added = {key: value for key, value in now.items() if value is not None and key not in kept}
    if added:
        backup.save("sysctl", str(path), {**kept, **added})


def main(
    task: Task,
    path: Path,  # the file that keeps them
    values: Mapping[str, Any],  # key to value
    remember: bool = False,  # keep file and values as they were before, for `undo`
) -> None:
    present(task, path, values, keep=remember)


def present(task: Task, path: Path, values: Mapping[str, Any], *, keep: bool = False) -> None:
    wanted = {key: " ".join(str(value).split()) for key, value in values.items()}
    content = "# Written by sparkloom.\n" + "".join(f"{key} = {value}\n" for key, value in sorted(wanted.items()))
    before = path.read_text() if path.exists() else ""
    now = {key: live(key) for key in wanted}
    differing = [key for key, value in wanted.items() if now[key] is not None and now[key] != value]
    refused = {key: "this kernel does not have it" for key in wanted if now[key] is None}
    if not task.check_mode:
        if keep and (before != content or differing):
            remember(path, now)
        # the kernel first: a run that is killed in between leaves no file that promises what is not so
        reasons = {key: apply(key, wanted[key]) for key in differing}
        refused |= {key: reason for key, reason in reasons.items() if reason}
        if before != content:
            backup.write(path, content, 0o644)
    for key, (place, value) in overruled(path, wanted).items():
        task.warn(
            f"{place} sets {key} to {value} after {path} at every boot, expected {wanted[key]}: "
            "remove that line, or give the value that is meant in the inventory"
        )
    changed = sorted(set(differing) - set(refused))
    task.exit_json(
        changed=before != content or bool(changed),
        keys=changed,
        refused=refused,
        drift=[{"what": key, "found": now[key], "expected": wanted[key]} for key in changed],
        diff=[backup.diff(path, before, content)] if before != content else [],
    )
