"""Fill this node's store from its source while the next node reads along; leave when that one has all."""

from __future__ import annotations

import queue
import threading
import traceback
from typing import Any, Protocol

from sparkloom.onnode.weights import serve
from sparkloom.onnode.weights.folder import Folder
from sparkloom.onnode.weights.hub import Hub
from sparkloom.onnode.weights.intake import Intake, Spoilt
from sparkloom.onnode.weights.job import Job
from sparkloom.onnode.weights.layout import Snapshot, StoreError
from sparkloom.onnode.weights.peer import Peer

REPORT = 0.5  # seconds between two looks at the progress
LINGER = 120.0  # how long the next node may take to come for what is ready here, or for the cause


class Source(Protocol):
    def fetch(self, number: int, intake: Intake) -> None: ...


def run(job: Job) -> bool:
    """True when everything is here and verified."""
    threading.Thread(target=_watch, args=(job,), daemon=True).start()
    try:
        serve.start(job) if job.spec.get("downstream") else None
        source = _source(job)
        _fetch_all(job, source)
        job.finish()
        if isinstance(source, Peer):
            source.release()
    except StoreError as error:
        job.fail(str(error))
    except OSError as error:
        job.fail(f"{error.strerror or error}: {error.filename or job.store.root}")
    except Exception as error:
        traceback.print_exc()  # into the log
        job.fail(f"{type(error).__name__}: {error} (the whole of it is in {job.run}/log)")
    job.released.wait(LINGER)
    return job.state == "done"


def _source(job: Job) -> Source:
    spec = job.spec["source"]
    if spec["kind"] == "peer":
        peer = Peer(spec)
        job.list(peer.manifest())
        return peer
    if spec["kind"] == "own":
        job.list([_known(job, want) for want in job.spec["models"]])
        return Nothing()
    source = Hub(spec) if spec["kind"] == "hub" else Folder(spec)
    job.state = "listing"
    job.list(source.manifest(job.store, job.spec["models"]))
    return source


class Nothing:
    """This node has all; it only gives."""

    def fetch(self, number: int, intake: Intake) -> None:
        raise StoreError(f"{intake.entry.path} was here a moment ago and is not any more; run this again")


def _known(job: Job, want: dict[str, Any]) -> Snapshot:
    known = job.store.read(want["id"], want["revision"] or job.store.current(want["id"]) or "")
    if known is None:
        raise StoreError(f"{want['id']} was here a moment ago and is not any more; run this again")
    return known[0]


def _fetch_all(job: Job, source: Source) -> None:
    """Files in the manifest's order, several at once; the first that cannot be had ends the transfer."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(job.intakes)):
        waiting.put(number)
    causes: list[BaseException] = []

    def work() -> None:
        while not causes:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                _fetch(source, number, job.intakes[number])
            except BaseException as error:
                causes.append(error)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(job.spec["connections"])]
    for worker in workers:
        worker.start()
    for worker in workers:
        while worker.is_alive() and not causes:
            worker.join(0.2)
    if causes:
        raise causes[0]


def _fetch(source: Source, number: int, intake: Intake) -> None:
    """A file whose hash is wrong is fetched once more from its beginning; twice wrong is the source's fault."""
    if intake.adopt():
        return
    for last in (False, True):
        intake.open()
        try:
            if intake.have < intake.entry.size:
                source.fetch(number, intake)
            intake.finish()
            return
        except Spoilt as error:
            if last:
                raise StoreError(f"{error}, twice: its source is damaged") from None


def _watch(job: Job) -> None:
    while not job.ended.wait(REPORT):
        job.report()
