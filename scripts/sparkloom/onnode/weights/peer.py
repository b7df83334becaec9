"""The node before this one in the chain as the source: over both rails at once, each file from where it stopped."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import time
from typing import Any

from sparkloom.onnode.weights import names, wire
from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.job import Job
from sparkloom.onnode.weights.layout import Snapshot
from sparkloom.onnode.weights.names import StoreError, shown

SILENCE = 60.0  # seconds without an answer after which the other node counts as gone
ANSWER = 30.0  # seconds for one answer
PAUSE = 0.3
STOPPED = "stopped because of"


class Peer:
    def __init__(self, job: Job) -> None:
        source = job.spec["source"]
        self.name, self.addresses, self.port = source["name"], source["addresses"], source["port"]
        self._job, self._own = job, job.spec["listen"]

    def manifest(self) -> list[Snapshot]:
        """Those that the first node verified, as the controller says: what has another digest is nobody's manifest."""
        return [self._one(want, self._job.spec["manifests"][want["id"]]) for want in self._job.spec["models"]]

    def _one(self, want: dict[str, Any], digest: str) -> Snapshot:
        data = self._patiently(f"manifest {digest}")
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(
                f"{self.name} hands on another manifest of {want['id']} than the one that the first node verified: "
                f"sha256 {hashlib.sha256(data).hexdigest()}, expected {digest}; look after {self.name}, none of it was "
                "taken"
            )
        try:
            snapshot = Snapshot.of(json.loads(data))
        except (ValueError, RecursionError) as error:
            raise StoreError(f"the manifest of {want['id']} from {self.name} is none: {shown(error)}") from None
        expected(snapshot, want)
        return snapshot

    def _patiently(self, request: str) -> bytes:
        """Waits as long as the other node answers that it does not know yet."""
        heard, turn = time.monotonic(), 0
        while True:
            try:
                answer, data = self._ask(turn, request)
                if answer == "manifest":
                    return data
                if answer == "unknown":
                    raise wire.NotProved(f"it knows of no {shown(request)}")
                heard = time.monotonic()
            except OSError as error:
                if time.monotonic() - heard > SILENCE:
                    raise self._gone(error) from None
            turn += 1
            time.sleep(PAUSE)

    def release(self) -> None:
        """This node has all: the one before need not stay."""
        with contextlib.suppress(OSError):
            self._ask(0, "released")

    def fetch(self, intake: Intake) -> None:
        heard, turn = time.monotonic(), intake.number
        while intake.have < intake.entry.size:
            before = intake.have
            try:
                if not self._pull(turn, intake):
                    time.sleep(PAUSE)
                heard = time.monotonic()
            except OSError as error:
                if intake.have > before:
                    heard = time.monotonic()
                if time.monotonic() - heard > SILENCE:
                    raise self._gone(error) from None
                turn += 1
                time.sleep(PAUSE)

    def _pull(self, turn: int, intake: Intake) -> bool:
        """False when the other node has nothing more of this file yet."""
        with contextlib.closing(self._connection(turn)) as connection:
            request = f"file {intake.entry.sha256} {intake.have}"
            answer, size, sha256 = connection.ask(self._job.secret(), request)
            if answer == "wait":
                return False
            if answer == "failed":
                raise self._failed(connection.body(sha256))
            if answer != "file" or size != intake.entry.size - intake.have:
                raise wire.NotProved(f"it answers {answer} of {size} bytes to {request}")
            intake.drain(connection.read_into)
            return True

    def _ask(self, turn: int, request: str) -> tuple[str, bytes]:
        with contextlib.closing(self._connection(turn)) as connection:
            answer, _, sha256 = connection.ask(self._job.secret(), request)
            data = connection.body(sha256)
        if answer == "failed":
            raise self._failed(data)
        return answer, data

    def _connection(self, turn: int) -> wire.Connection:
        """From this node's own end of the same rail: that is the address that the other one expects."""
        place = turn % len(self.addresses)
        own = self._own[place] if len(self._own) == len(self.addresses) else None
        try:
            return wire.Connection(self.addresses[place], self.port, own, ANSWER)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:  # else this node lacks that end
                raise
            return wire.Connection(self.addresses[place], self.port, None, ANSWER)

    def _failed(self, said: bytes) -> StoreError:
        cause = shown(said.decode(errors="replace"), 1000)
        return StoreError(cause if cause.startswith(STOPPED) else f"{STOPPED} {self.name}: {cause}")

    def _gone(self, error: Exception) -> StoreError:
        where = ", ".join(f"{address}:{self.port}" for address in self.addresses)
        return StoreError(
            f"{self.name} ({where}) gives nothing since {SILENCE:.0f} s ({error}); look at the rails with "
            "`sparkloom doctor`, then run this again: what is here stays"
        )


def expected(snapshot: Snapshot, want: dict[str, Any]) -> None:
    """What a source calls this model must be what was asked for."""
    pinned = want["revision"] if len(want["revision"] or "") == len(snapshot.commit) else None
    if snapshot.id != want["id"] or (pinned and names.commit(pinned) != snapshot.commit):
        raise StoreError(
            f"asked for {want['id']} at {want['revision']}, was given {snapshot.id} at {snapshot.commit}; "
            "its source is not to be trusted"
        )
