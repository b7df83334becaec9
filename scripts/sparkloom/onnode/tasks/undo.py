"""Undo what this node remembers.

Puts back every file and kernel setting of which the node kept how it was, whichever role changed it, or those of some
files alone. What has no record is left alone, and so is a key that the kernel has no more. A unit that was not there
before is stopped and disabled first. Refused while something remembered is still in use by another part, named in
`first`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkloom.onnode.host import backup, kernel, networkd
from sparkloom.onnode.host.read import mounted
from sparkloom.onnode.task import Task

UNITS = Path("/etc/systemd/system")


def recorded(kind: str) -> list[Path]:
    """What the records of a kind are about."""
    names = [path.name.removeprefix(f"{kind}-").removesuffix(".json") for path in backup.FOLDER.glob(f"{kind}-*.json")]
    return [Path("/" + name.replace("!", "/")) for name in sorted(names)]


def new_units(files: list[Path]) -> list[str]:
    """Units that came with us: their file was not there before."""
    ours = [path for path in files if path.parent == UNITS and path.suffix != ".conf"]
    return [path.name for path in ours if "content" not in (backup.load("file", str(path)) or {})]


def settings(files: list[Path]) -> dict[str, str]:
    """Kernel settings as they were before these files set them."""
    kept: dict[str, str] = {}
    for path in files:
        kept |= backup.load("sysctl", str(path)) or {}
    return kept


def put_back(task: Task, files: list[Path], sysctls: list[Path]) -> None:
    """Each of these records, and then there is none."""
    for unit in new_units(files):
        task.run_command(["systemctl", "disable", "--now", unit])
    kernel.put_back(task, settings(sysctls))
    for path in backup.to_restore(files):
        backup.restore_file(path)
    for path in sysctls:
        backup.forget("sysctl", str(path))
    if any(UNITS in path.parents for path in files):
        task.run_command(["systemctl", "daemon-reload"], check_rc=True)


def emptied(folders: list[Path], dry: bool) -> list[Path]:
    """Those that nobody uses any more; one that holds something stays."""
    gone = []
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            gone.append(folder)
            if not dry:
                folder.rmdir()
    return gone


def main(
    task: Task,
    records: bool = False,  # put back what the node remembers
    of: Sequence[str] | None = None,  # with `records`: of these files alone
    first: Mapping[str, Any] = {},  # kind of a record to the advice given while one is kept
    remove: Sequence[str] = (),  # files and folders that nobody but Sparkloom writes
    empty: Sequence[str] = (),  # folders that go when nothing is in them, in order
) -> None:
    for kind, advice in first.items():
        if kept := recorded(kind):
            task.fail_json(msg=f"found {', '.join(map(str, kept))} as it was changed; expected it undone: {advice}")
    files, sysctls = (
        [path for path in recorded(kind) if records and (of is None or str(path) in of)] for kind in ("file", "sysctl")
    )
    keys = kernel.differing(settings(sysctls))
    gone = [path for name in remove if os.path.lexists(path := Path(name))]
    folders = [path for path in gone if not path.is_symlink()]
    if held := [*mounted([str(path) for path in folders]), *(str(path) for path in folders if path.is_mount())]:
        task.fail_json(
            msg=f"found {', '.join(held)} mounted below what is removed; expected nothing there. Nothing was removed; "
            "unmount it and run this again"
        )
    if not task.check_mode:
        networkd.hold(task)
        put_back(task, files, sysctls)
        for path in filter(os.path.lexists, gone):  # a folder that came with a file went with it
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    gone += emptied([Path(name) for name in empty], dry=task.check_mode)
    paths = [*files, *gone]
    diff = [backup.diff(path, f"{path}\n", "") for path in paths]
    task.exit_json(changed=bool(paths or keys), paths=[str(path) for path in paths], keys=keys, diff=diff)
