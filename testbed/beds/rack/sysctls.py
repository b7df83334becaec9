"""Kernel settings of the whole machine: raised where four nodes need more, and put back by `down`."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.steps import Say, Step

SAVED = names.CACHE / "sysctls-before.json"  # beside the caches: a removed checkout must not take it along
# every kubelet, kube-proxy, containerd and systemd watches files; with the usual 128, kube-proxy ends with
# "too many open files" on the nodes that come last
NEEDED = {"fs.inotify.max_user_instances": 2048, "fs.inotify.max_user_watches": 524288}
# the kubelet sets these by itself
TOUCHED = ("vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops")


def _path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def _read(name: str) -> int:
    return int(_path(name).read_text())


def _enough() -> bool:
    return SAVED.exists() and all(_read(name) >= value for name, value in NEEDED.items())


def _raise(say: Say) -> None:
    machine.require_root()
    if not SAVED.exists():
        present = [name for name in (*NEEDED, *TOUCHED) if _path(name).exists()]
        store.write_json(SAVED, {name: _read(name) for name in present})
    for name, value in NEEDED.items():
        if _read(name) < value:
            say(f"{name}: {_read(name)} -> {value} (`down` puts it back)")
            _path(name).write_text(str(value))


def put_back() -> bool:
    if not SAVED.exists():
        return False
    for name, value in json.loads(SAVED.read_text()).items():
        if _read(name) != value:
            _path(name).write_text(str(value))
    SAVED.unlink()
    return True


def steps() -> list[Step]:
    return [Step("limits", "raises the machine's file watch limits for four nodes", _enough, _raise)]
