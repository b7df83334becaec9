"""What runs beside the engines (router, page, exporters, a Prometheus): waits until it stands, or says why not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparkloom.base.finding import Finding
from sparkloom.onnode.now import pods

KINDS = ("Deployment", "DaemonSet")
PINS = "versions.yml (group_vars/all)"  # where images of ours are named
EVERY, TELL_EVERY = 1.0, 10.0
FIX = "mend what it names; nothing needs a playbook then, its pods are tried again and again"
LAST_WORDS = 3  # lines of a container that ended


class Source(Protocol):
    def workload(self, kind: str, name: str) -> Any: ...

    def pods(self, labels: dict[str, str]) -> list[Any]: ...

    def warnings(self) -> dict[str, str]: ...

    def tail(self, pod: str, lines: int, *, previous: bool = False) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    ready: bool
    message: str


@dataclass(frozen=True, slots=True)
class _Short:
    """One that has not all of its pods yet."""

    name: str
    have: int
    wanted: int
    labels: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.name}: {self.have} of {self.wanted} ready" if self.wanted else f"{self.name}: not looked at yet"


def wait(
    reached: Source,
    objects: Iterable[Mapping[str, Any]],
    timeout: float,
    say: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Until every Deployment and DaemonSet of these objects has all its pods, of the newest kind and ready."""
    awaited = _awaited(objects)
    begun, told = clock(), clock()
    while missing := list(_late(reached, awaited)):
        now = clock()
        if now - begun > timeout:
            return Outcome(False, "\n".join(f"{one}, {_cause(reached, one)}" for one in missing))
        if now - told >= TELL_EVERY:
            told = now
            for one in missing:
                say(f"{one} after {now - begun:.0f} s of {timeout:.0f} s: {_cause(reached, one)}")
        sleep(EVERY)
    names = ", ".join(name for _, name in awaited) or "nothing to wait for"
    return Outcome(True, f"{names}: ready after {clock() - begun:.0f} s")


def late(reached: Source, objects: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """What is there and does not stand now; that something is not there at all, others say."""
    found = [(one, _cause(reached, one)) for one in _late(reached, _awaited(objects)) if one.wanted]
    return [
        Finding("the cluster", one.name, f"{one.have} of {one.wanted} ready, {why}", "all", FIX) for one, why in found
    ]


def _awaited(objects: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(str(one["kind"]), str(one["metadata"]["name"])) for one in objects if one["kind"] in KINDS]


def _late(reached: Source, awaited: Iterable[tuple[str, str]]) -> Iterator[_Short]:
    for kind, name in awaited:
        if (one := reached.workload(kind, name)) is None:
            yield _Short(name, 0, 0, {})
            continue
        wanted, have, looked_at = _counts(kind, one)
        if not looked_at or have < wanted:
            yield _Short(name, have, wanted if looked_at else 0, one.spec.selector.match_labels or {})


def _counts(kind: str, one: Any) -> tuple[int, int, bool]:
    """Wanted; of the newest kind and ready, while none of an older kind is left; whether its controller has seen it."""
    status = one.status
    looked_at = (status.observed_generation or 0) >= one.metadata.generation
    if kind == "DaemonSet":
        ready = min(status.updated_number_scheduled or 0, status.number_available or 0)
        return status.desired_number_scheduled or 0, ready, looked_at
    old = (status.replicas or 0) - (status.updated_replicas or 0)
    ready = min(status.updated_replicas or 0, status.available_replicas or 0)
    return one.spec.replicas or 0, ready if old <= 0 else ready - 1, looked_at


def _cause(reached: Source, one: _Short) -> str:
    """Of the first of its pods that has one to tell."""
    warnings = reached.warnings()
    for pod in reached.pods(dict(one.labels)):
        if pod.metadata.deletion_timestamp or pods.ready(pod):
            continue
        if told := pods.waits(pod, warnings, {}, PINS):
            return told
        if ended := _ended(reached, pod):
            return ended
        return f"its pod {pod.metadata.name} starts"
    return "no pod of it is there yet"


def _ended(reached: Source, pod: Any) -> str:
    for status in pod.status.container_statuses or []:
        if status.restart_count:
            words = " | ".join(reached.tail(pod.metadata.name, LAST_WORDS, previous=True))
            return f"{status.name} ended {status.restart_count} times; its last words: {words or 'none'}"
    return ""
