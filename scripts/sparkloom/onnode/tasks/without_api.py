"""Tell what runs here without the cluster's API: the kubelet's unit with its last words, and each rank's log.

Reads only: systemd, the journal, the kubelet's folders of logs, the processes in its cgroups, and what host_metrics
measured of disks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from sparkloom.onnode import host_metrics, memory_guard
from sparkloom.onnode.host.read import run
from sparkloom.onnode.host_metrics import disks
from sparkloom.onnode.task import Task

UNITS = ("k3s.service", "k3s-agent.service", "kubelet.service")
MEASURED = Path(host_metrics.FOLDER, host_metrics.FILE)
ENGINE = "engine"  # the container of a rank
WRITTEN = re.compile(r"^\S+ std(?:out|err) [FP] ")  # by containerd, before each line
SUPERVISOR = "[sparkloom rank "


def units() -> list[str]:
    """Those that are here, as systemd says it, then what they said last."""
    shown = run("systemctl", "list-units", "--all", "--plain", "--no-legend", *UNITS)
    named = [f"--unit={unit}" for unit in UNITS]
    return (shown + run("journalctl", "--quiet", "--no-pager", "--lines=2", "--output=short-iso", *named)).splitlines()


def rank(namespace: str, pod: str, uid: str, start: str, most: int) -> Iterator[str]:
    """Whether it runs, what its supervisor said last, and the end of its log."""
    file = memory_guard.LOGS / f"{namespace}_{pod}_{uid}" / ENGINE / f"{start}.log"
    lines = [WRITTEN.sub("", line) for line in run("tail", "-n", "5000", str(file)).splitlines()]
    state = f"runs, start {int(start) + 1}" if any(memory_guard.processes(uid)) else "does not run"
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(file.stat().st_mtime))
    said = next((line for line in reversed(lines) if line.startswith(SUPERVISOR)), "no word of its supervisor")
    yield f"{pod} {state}; its log until {until}: {said}"
    yield from lines[max(0, len(lines) - most) :]


def main(
    task: Task,
    namespace: str,  # of our pods
    pods: str = "*",  # which of them
    lines: int = 0,  # of each rank's log, the last ones
) -> None:
    ranks = [one for one in sorted(memory_guard.starts(namespace, ENGINE)) if fnmatch(one[0], pods)]
    said = [line for one in ranks for line in rank(namespace, *one, lines)] or ["no rank was started here"]
    told = disks.fills(MEASURED.read_text()) if MEASURED.exists() else []  # an API server needs room, too
    task.exit_json(told=[*told, *units(), *said])
