"""Control groups that nobody mounted on this machine: mounted here, so that Docker gives every node its own.

In a controller that Docker does not see, every node is in the machine's root group: the kubelets find each other's pods
there, take them for orphans, and try for ever to remove them. With four racks that was most of what the machine did.
"""

from __future__ import annotations

import json
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step

ROOT = Path("/sys/fs/cgroup")
SAVED = names.CACHE / "cgroups-mounted.json"  # beside the caches: a removed checkout must not take it along
JOINED = (("net_cls", "net_prio"),)  # as systemd mounts them in a node: a controller has one hierarchy


def missing(controllers: str, mounts: str) -> list[str]:
    """What /proc/cgroups enables and /proc/self/mounts does not show, as mount options."""
    rows = (line.split() for line in controllers.splitlines() if not line.startswith("#"))
    enabled = [row[0] for row in rows if row[3] == "1"]
    shown = {option for line in mounts.splitlines() if " cgroup " in line for option in line.split()[3].split(",")}
    absent = [name for name in enabled if name not in shown]
    for pair in JOINED:
        if set(pair) <= set(absent):
            absent = [name for name in absent if name not in pair] + [",".join(pair)]
    return absent


def _missing() -> list[str]:
    if (ROOT / "cgroup.controllers").exists():  # version 2 has one tree for all
        return []
    return missing(Path("/proc/cgroups").read_text(), Path("/proc/self/mounts").read_text())


def _mount(say: Say) -> None:
    machine.require_root()
    absent = _missing()
    say(f"mounting {', '.join(absent)} below {ROOT} (`down` unmounts them)")
    store.write_json(SAVED, sorted({*_saved(), *absent}))
    for options in absent:
        place = ROOT / options
        place.mkdir(exist_ok=True)
        run(["mount", "-t", "cgroup", "-o", options, "cgroup", place])


def _saved() -> list[str]:
    return list(json.loads(SAVED.read_text())) if SAVED.exists() else []


def put_back() -> bool:
    """Undo `_mount`; tells whether there was something to undo."""
    if not SAVED.exists():
        return False
    for options in _saved():
        place = ROOT / options
        if place.is_dir():
            run(["umount", place], check=False)
            place.rmdir()
    SAVED.unlink()
    return True


def steps() -> list[Step]:
    return [Step("cgroups", "mounts the control groups that nodes need one of each", lambda: not _missing(), _mount)]
