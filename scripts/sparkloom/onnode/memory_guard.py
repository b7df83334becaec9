"""Stop a rank's engine before the node runs out of memory, and give the page cache back when an engine starts.

On a GB10, CPU and GPU share the memory, and what CUDA takes is charged to no process and no control group. The
kernel's OOM killer and systemd-oomd go by those, so nothing acts, and the node hangs until somebody cuts its power. The
only true figure is MemAvailable. Below the floor, twice in a row, the engine's processes are killed, and nothing else:
not the pod's sandbox, which holds the rails, not the rank's supervisor, and no other pod. The supervisor finds the
figures in a file of its own pod: it names the cause, counts it against the restarts that are left, and begins anew.

Weights that were copied or read fill the page cache, and CUDA does not wait until the kernel takes it back: loads fail
at 73 to 97 % (public reports). So the cache is dropped when an engine starts, and while free memory is below the floor
with an engine there and more than that in the cache. Standard library only; a line in the journal for every act.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode.host.memory import info
from sparkloom.onnode.host.read import text
from sparkloom.onnode.rank.plan import GUARD_FILE, RUN

LOGS = Path("/var/log/pods")
CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")
KEPT = Path("/run/sparkloom/memory-guard.json")
EVERY_SECONDS = 1.0
READINGS = 2  # in a row below the floor
AFTER_KILL_SECONDS = 20.0  # until the driver has given the memory back
BETWEEN_DROPS_SECONDS = 10.0
FIRST = re.compile(r"^NSpid:.*\t1$", re.M)  # as its own container counts


def starts(namespace: str, container: str) -> set[tuple[str, str, str]]:
    """(pod, its uid, number of the start) of every engine that the kubelet started here and still keeps the log of."""
    started = set()
    for folder in LOGS.glob(f"{namespace}_*_*"):
        _, pod, uid = folder.name.split("_", 2)
        logs = [path.stem for path in (folder / container).glob("*.log") if path.stem.isdigit()]
        if logs:
            started.add((pod, uid, max(logs, key=int)))
    return started


def processes(uid: str) -> tuple[list[int], list[int]]:
    """Of a pod: process 1 of each container (a rank's supervisor, the sandbox), and all others, which are an engine."""
    marks = (f"pod{uid}", f"pod{uid.replace('-', '_')}")
    inside: set[int] = set()
    for place, _, names in os.walk(CGROUPS):
        if "cgroup.procs" in names and any(mark in place for mark in marks):
            inside |= {int(pid) for pid in text(Path(place, "cgroup.procs")).split()}
    said = {pid: text(PROC / str(pid) / "status") for pid in sorted(inside)}
    first = [pid for pid, status in said.items() if FIRST.search(status)]
    return first, [pid for pid, status in said.items() if status and pid not in first]


def tell(supervisor: int, what: dict[str, Any]) -> None:
    """Into its own pod, where engines may write too: no link of theirs is followed."""
    opened = [os.open(PROC / str(supervisor) / "root", os.O_RDONLY)]
    try:
        for name in Path(RUN).parts[1:]:
            opened.append(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        way = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        opened.append(os.open(GUARD_FILE, way, 0o644, dir_fd=opened[-1]))
        os.write(opened[-1], json.dumps(what).encode())
    finally:
        for number in opened:
            os.close(number)


class Guard:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.floor = float(settings["floor_gib"])
        self.which = settings["namespace"], settings["container"]
        self.seen = starts(*self.which)
        self.below = 0
        self.quiet_until = self.dropped = float("-inf")
        self.reported = False

    def look(self, now: float) -> None:
        memory = info(PROC)
        there = starts(*self.which)
        clean = memory["Cached"] - memory.get("Shmem", 0) - memory.get("Mapped", 0)
        short = memory["MemFree"] < self.floor < clean
        if there - self.seen:
            self.drop(now, f"{', '.join(sorted(pod for pod, _, _ in there - self.seen))} starts", memory)
        elif short and now - self.dropped >= BETWEEN_DROPS_SECONDS and self.running(there):
            self.drop(now, f"{memory['MemFree']:.1f} GiB free while an engine is there", memory)
        self.seen = there
        self.below = self.below + 1 if memory["MemAvailable"] < self.floor else 0
        if not self.below:
            self.reported = False
        if self.below >= READINGS and now >= self.quiet_until:
            self.act(now, memory, there)

    def running(self, there: set[tuple[str, str, str]]) -> dict[str, tuple[list[int], list[int]]]:
        return {pod: engine for pod, uid, _ in there if (engine := processes(uid))[1]}

    def drop(self, now: float, why: str, memory: dict[str, float]) -> None:
        self.dropped = now
        try:
            (PROC / "sys/vm/drop_caches").write_text("1\n")
        except OSError as error:
            say(f"{why}: the page cache cannot be dropped: {error}")
            return
        say(f"{why}: page cache given back ({memory['Cached']:.1f} GiB were in it)")

    def act(self, now: float, memory: dict[str, float], there: set[tuple[str, str, str]]) -> None:
        short = f"{memory['MemAvailable']:.1f} GiB available, the floor is {self.floor:g}"
        killed = self.running(there)
        for pod, (supervisors, engine) in killed.items():
            say(f"{short}: killing the engine of {pod} ({len(engine)} processes)")
            for supervisor in supervisors:
                with contextlib.suppress(OSError):  # the sandbox has no such folder
                    tell(supervisor, {"when": time.time(), "found": short})
            for pid in engine:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if killed:
            self.quiet_until = now + AFTER_KILL_SECONDS
            keep({"when": time.time(), "found": short, "killed": sorted(killed), "stops": stops() + len(killed)})
        elif not self.reported:
            say(f"{short}, and no engine is here: nothing is done; `ps aux --sort=-rss | head` shows the largest")
            self.reported = True


def keep(what: dict[str, Any]) -> None:
    """The last act, for whoever asks why a rank was restarted; gone after a boot."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(what) + "\n")


def stops() -> int:
    """Engines that it stopped since the boot, also before it was itself started anew."""
    return int(json_text.kept(KEPT).get("stops", 0))


def say(text: str) -> None:
    print(text, flush=True)


def main(words: list[str]) -> int:
    if len(words) != 1 or words[0].startswith("-"):
        print("usage: memory-guard.pyz SETTINGS.JSON", file=sys.stderr)
        return 2
    guard = Guard(json.loads(Path(words[0]).read_text()))
    # All of this program stays where it is: when memory is short, nothing can be read from disk any more.
    ctypes.CDLL(None).mlockall(3)  # MCL_CURRENT | MCL_FUTURE
    say(f"the floor is {guard.floor:g} GiB of available memory")
    while True:
        guard.look(time.monotonic())
        time.sleep(EVERY_SECONDS)
