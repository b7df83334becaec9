"""One operation at a time: a Lease in the cluster says who works on the site, since when, and with which command.

It is renewed by a process beside the run (`lease_renewal.py`). A holder counts as gone when its process on this machine
is no more, or when another machine's Lease was not renewed while we watched: clocks of two machines are never compared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkloom.base.repository import WORK
from sparkloom.onnode.now import labels
from sparkloom.onnode.now.labels import LEASES, MARK, RUNS
from sparkloom.site.client import or_none

DURATION, RENEW = 60, 10.0  # seconds
WATCHED = 3 * RENEW + 5  # without a renewal: nobody keeps it
LETS_GO = 4.0  # until that process has seen the end of its run
ENDED = "did not end"
CONFLICT, ABSENT = 409, 404


@dataclass(frozen=True, slots=True)
class Operation:
    """Who does what; `machine` is one start of one computer, `process` its number there and when it began."""

    who: str
    machine: str
    process: str
    command: str
    since: str = ""
    stage: str = ""
    state: str = RUNS
    renewed: str = ""

    def same(self, other: Operation) -> bool:
        return (self.machine, self.process) == (other.machine, other.process)

    def sentence(self) -> str:
        at = f", at '{self.stage}'" if self.stage else ""
        return f"{self.command} of {self.who} since {self.since}{at}"


class Held(Exception):
    """Somebody else works on this site."""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def notes(pid: int) -> Path:
    """Where a run says how far it is, for who renews its Lease."""
    return WORK / ".build" / "operation" / f"{pid}.json"


def begun(pid: int) -> str:
    """A process's number with the tick in which it began: numbers are used again."""
    try:
        return f"{pid}-{Path(f'/proc/{pid}/stat').read_text().rpartition(') ')[2].split()[19]}"
    except (OSError, IndexError):
        return ""


def machine() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.uname().nodename


def alive(process: str) -> bool:
    return bool(process) and begun(int(process.partition("-")[0])) == process


class Book:
    """The Lease of one site; `api` is the client's CoordinationV1Api."""

    def __init__(self, api: Any, site: str) -> None:
        self.api, self.name = api, labels.lease(site)

    def read(self) -> tuple[Operation | None, Any]:
        lease = or_none(lambda: self.api.read_namespaced_lease(self.name, LEASES))
        if lease is None:
            return None, None
        notes = lease.metadata.annotations or {}
        kept = {key: notes.get(MARK + key, "") for key in ("machine", "process", "command", "since", "stage", "state")}
        renewed = str(lease.spec.renew_time or "")
        return Operation(who=str(lease.spec.holder_identity or ""), **kept | {"renewed": renewed}), lease

    def write(self, operation: Operation, lease: Any) -> bool:
        """False when somebody else wrote meanwhile."""
        from kubernetes.client import ApiException

        notes = {MARK + key: value for key, value in asdict(operation).items() if key not in ("who", "renewed")}
        version = {"resourceVersion": lease.metadata.resource_version} if lease else {}
        labels = {"app.kubernetes.io/part-of": "sparkloom"}
        body = {
            "metadata": {"name": self.name, "namespace": LEASES, "labels": labels, "annotations": notes, **version},
            "spec": {
                "holderIdentity": operation.who,
                "leaseDurationSeconds": DURATION,
                "renewTime": now(),
                "acquireTime": operation.since,
            },
        }
        try:
            if lease:
                self.api.replace_namespaced_lease(self.name, LEASES, body)
            else:
                self.api.create_namespaced_lease(LEASES, body)
        except ApiException as error:
            if error.status not in (CONFLICT, ABSENT):
                raise
            return False
        return True

    def remove(self) -> None:
        or_none(lambda: self.api.delete_namespaced_lease(self.name, LEASES))


def take(
    book: Book,
    mine: Operation,
    *,
    wait: float = 0,
    over: str = "",
    say: Callable[[str], object] = print,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Operation | None:
    """What was interrupted before, if anything; `Held` when somebody works here and goes on working."""
    started, seen, lives = clock(), ("", clock()), False
    while True:
        other, lease = book.read()
        if other and _ends(other, mine) and clock() - started < LETS_GO:
            sleep(0.5)
            continue
        if other is None or _gone(other, mine, over):
            if book.write(replace(mine, since=mine.since or now()), lease):
                return None if other is None or other.same(mine) else replace(other, state=ENDED)
            continue
        if other.renewed != seen[0]:
            lives, seen = bool(seen[0]), (other.renewed, clock())
        watched = other.machine == mine.machine or lives  # of a holder elsewhere one renewal is seen first
        if other.machine != mine.machine and clock() - seen[1] > WATCHED:
            say(f"{other.sentence()}: not renewed for {WATCHED:.0f} s, so nobody keeps it")
            over = other.who
            continue
        if watched and clock() - started >= wait:
            raise Held(refusal(other))
        sleep(min(RENEW / 5, 2.0))


def _gone(other: Operation, mine: Operation, over: str) -> bool:
    """Ours already, ended without a word, or taken over by its holder's name."""
    if other.state == ENDED or other.same(mine) or (over and over == other.who):
        return True
    return other.machine == mine.machine and not alive(other.process)


def _ends(other: Operation, mine: Operation) -> bool:
    """Its process on this machine is gone, and who renews its Lease is about to say how it went."""
    return other.state == RUNS and other.machine == mine.machine and not alive(other.process)


def refusal(other: Operation) -> str:
    found = f"one operation at a time: found {other.sentence()}, expected nobody"
    over = f"take over, which ends that run: -e operation_take_over={other.who}"
    return f"{found}; wait for it (-e operation_wait_seconds=3600), or {over}"


def half_done(other: Operation) -> str:
    """What an operation that did not end leaves, and the command that goes on."""
    at = f"at '{other.stage}'" if other.stage else "before its first step"
    ended = f"{other.command} of {other.who}, begun {other.since}, did not end: it stopped {at}"
    again = f"The same command goes on where it stopped: {other.command}"
    return f"{ended}, and what came before that is done. {again}"
