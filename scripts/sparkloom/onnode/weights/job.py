"""One transfer on one node: what it is to have, how far it is, and what it says about that."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from sparkloom.onnode.host import backup
from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.layout import Snapshot, Store
from sparkloom.onnode.weights.names import StoreError

RUN = Path("/run/sparkloom/store")
SECRET = "secret"  # in RUN, which is root's alone and in memory
WINDOW = 8.0  # seconds over which a rate is meant


class Job:
    """Shared by the threads that fetch, the server for the next node, and the one that writes the status."""

    def __init__(self, spec: dict[str, Any], run: Path = RUN) -> None:
        self.spec, self.run = spec, run
        self.store = Store(spec["store"])
        self.snapshots: list[Snapshot] = []
        self.manifests: dict[str, str] = dict(spec.get("manifests", {}))  # model -> digest
        self.intakes: list[Intake] = []
        self.by_sha256: dict[str, Intake] = {}
        self.state, self.cause = "starting", ""
        self.listed = threading.Event()  # the manifest is known
        self.ended = threading.Event()  # done or failed
        self.released = threading.Event()  # the next node has all, or there is none
        self.heard = self._began = time.monotonic()  # when the next node last asked for something
        if not spec.get("downstream"):
            self.released.set()
        keep_secret(run, spec["secret"])
        self._rates: deque[tuple[float, int]] = deque(maxlen=64)
        self._lock = threading.Lock()
        self._telling = threading.Lock()

    def list(self, snapshots: list[Snapshot]) -> None:
        """The manifest is known: refuse when the disk cannot hold it, before the first byte."""
        intakes = _intakes(self.store, snapshots)
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
        self.manifests = {snapshot.id: snapshot.digest for snapshot in snapshots}
        self.by_sha256 = {intake.entry.sha256: intake for intake in intakes}
        self.state = "moving"
        self.listed.set()

    def secret(self) -> bytes:
        """Of the run that this transfer is now part of: a later one that joins it brings its own."""
        return (self.run / SECRET).read_bytes()

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
            "total": sum(i.entry.size for i in self.intakes),
            "moved": moved,
            "rate": (moved - before) / (now - then) if now > then else 0.0,
            "files_done": sum(i.done for i in self.intakes),
            "files": len(self.intakes),
            "commits": {s.id: s.commit for s in self.snapshots},
            "manifests": self.manifests,
            "seconds": now - self._began,
            "time": time.time(),
        }

    def report(self) -> None:
        with self._telling:  # the watch and the end of the work both tell
            backup.write(self.run / "status.json", json.dumps(self.status()), 0o644)


def keep_secret(run: Path, secret: str) -> None:
    """So that a transfer at work can be joined by a later run: never in an argument, nor in what a process is given."""
    run.mkdir(parents=True, exist_ok=True, mode=0o700)
    backup.write(run / SECRET, secret, 0o600)


def _intakes(store: Store, snapshots: list[Snapshot]) -> list[Intake]:
    """One per blob: two names of one content are fetched once."""
    intakes: dict[Path, Intake] = {}
    for snapshot in snapshots:
        times = store.times(snapshot.id)
        for entry in snapshot.files:
            final = store.blob(snapshot.id, entry)
            intakes.setdefault(final, Intake(entry, final, times.get((entry.blob, entry.sha256)), len(intakes)))
    return list(intakes.values())


def _kept(intake: Intake) -> int:
    for path in (intake.final, intake.part):
        if path.exists():
            return min(path.stat().st_size, intake.entry.size)
    return 0
