"""One transfer on one node: what it is to have, how far it is, and what it says about that."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.layout import Snapshot, Store, StoreError, write

RUN = Path("/run/sparkloom/store")
WINDOW = 8.0  # seconds over which a rate is meant


class Job:
    """Shared by the threads that fetch, the server for the next node, and the one that writes the status."""

    def __init__(self, spec: dict[str, Any], run: Path = RUN) -> None:
        self.spec, self.run = spec, run
        self.store = Store(spec["store"])
        self.snapshots: list[Snapshot] = []
        self.intakes: list[Intake] = []
        self.state, self.cause = "starting", ""
        self.listed = threading.Event()  # the manifest is known
        self.ended = threading.Event()  # done or failed
        self.released = threading.Event()  # the next node has all, or there is none
        if not spec.get("downstream"):
            self.released.set()
        self._rates: deque[tuple[float, int]] = deque(maxlen=64)
        self._lock = threading.Lock()
        self._telling = threading.Lock()

    def list(self, snapshots: list[Snapshot]) -> None:
        """The manifest is known: refuse when the disk cannot hold it, before the first byte."""
        times = {blob: time for s in snapshots for blob, time in self.store.times(s.id).items()}
        intakes = [Intake(e, self.store.blob(s.id, e), times.get(e.blob)) for s in snapshots for e in s.files]
        need = sum(i.entry.size - _kept(i) for i in intakes)
        self.store.root.mkdir(parents=True, exist_ok=True)
        disk = os.statvfs(self.store.root)
        free = disk.f_bavail * disk.f_frsize
        if need > free:
            raise StoreError(
                f"{need / 1e9:.1f} GB are missing but {self.store.root} has {free / 1e9:.1f} GB free; free some, "
                "or name another folder as cluster.model_store in group_vars/all/cluster.yml"
            )
        self.snapshots, self.intakes = snapshots, intakes
        self.state = "moving"
        self.listed.set()

    def finish(self) -> None:
        for snapshot in self.snapshots:
            self.store.publish(snapshot)
        self.state = "done"
        self.ended.set()
        self.report()

    def fail(self, cause: str) -> None:
        with self._lock:
            if not self.ended.is_set():
                self.state, self.cause = "failed", cause
                self.ended.set()
                self.listed.set()
        self.report()

    def status(self) -> dict[str, Any]:
        have, moved = sum(i.have for i in self.intakes), sum(i.moved for i in self.intakes)
        now = time.monotonic()
        self._rates.append((now, moved))
        while len(self._rates) > 2 and now - self._rates[0][0] > WINDOW:
            self._rates.popleft()
        then, before = self._rates[0]
        return {
            "job": self.spec["job"],
            "pid": os.getpid(),
            "state": self.state,
            "cause": self.cause,
            "have": have,
            "total": sum(s.size for s in self.snapshots),
            "moved": moved,
            "rate": (moved - before) / (now - then) if now > then else 0.0,
            "files_done": sum(i.done for i in self.intakes),
            "files": len(self.intakes),
            "commits": {s.id: s.commit for s in self.snapshots},
            "time": time.time(),
        }

    def report(self) -> None:
        with self._telling:  # the watch and the end of the work both tell
            write(self.run / "status.json", json.dumps(self.status()).encode())


def _kept(intake: Intake) -> int:
    for path in (intake.final, intake.part):
        if path.exists():
            return min(path.stat().st_size, intake.entry.size)
    return 0
