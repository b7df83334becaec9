"""Fill this node's store from its source while the next node reads along; leave when that one has all."""

from __future__ import annotations

import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Protocol

from sparkloom.onnode.weights import serve
from sparkloom.onnode.weights.folder import Folder
from sparkloom.onnode.weights.hub import Hub
from sparkloom.onnode.weights.intake import Intake, Spoilt
from sparkloom.onnode.weights.job import SECRET, Job
from sparkloom.onnode.weights.manifest import Snapshot
from sparkloom.onnode.weights.names import StoreError
from sparkloom.onnode.weights.peer import Peer, expected

REPORT = 0.5  # seconds between two looks at the progress
LINGER = 120.0  # how long the next node may be silent before it is no more waited for
LONGEST = 24 * 3600.0  # how long this node gives after it has all, whatever the next one does


class Source(Protocol):
    def fetch(self, intake: Intake) -> None: ...


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
    _linger(job)
    (job.run / SECRET).unlink(missing_ok=True)
    return job.state == "done"


def _linger(job: Job) -> None:
    """While the next node still asks, and a while longer."""
    ended = time.monotonic()
    while not job.released.wait(min(LINGER, 1.0)):
        now = time.monotonic()
        if now - max(ended, job.heard) > LINGER or now - ended > LONGEST:
            return


def _source(job: Job) -> Source:
    spec = job.spec["source"]
    if spec["kind"] == "peer":
        peer = Peer(job)
        job.list(peer.manifest())
        return peer
    if spec["kind"] == "own":
        job.list([_known(job, want) for want in job.spec["models"]])
        return Nothing()
    source = Hub(spec) if spec["kind"] == "hub" else Folder(spec)
    job.state = "listing"
    snapshots = source.manifest(job.store, job.spec["models"])
    for snapshot, want in zip(snapshots, job.spec["models"], strict=True):
        expected(snapshot, want)
    job.list(snapshots)
    return source


class Nothing:
    """This node has all; it only gives."""

    def fetch(self, intake: Intake) -> None:
        raise StoreError(f"{intake.entry.path} was here a moment ago and is not any more; run this again")


def _known(job: Job, want: dict[str, Any]) -> Snapshot:
    commit = job.store.commit(want["id"], want["revision"])
    known = job.store.read(want["id"], commit) if commit else None
    if known is None:
        raise StoreError(f"{want['id']} was here a moment ago and is not any more; run this again")
    return known[0]


def _fetch_all(job: Job, source: Source) -> None:
    """Files in the manifest's order, several at once; the first that cannot be had ends the transfer."""
    pool = ThreadPoolExecutor(job.spec["connections"])
    try:
        for done in as_completed([pool.submit(_fetch, source, intake) for intake in job.intakes]):
            done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _fetch(source: Source, intake: Intake) -> None:
    """A file whose hash is wrong is fetched once more from its beginning; twice wrong is the source's fault."""
    if intake.adopt():
        return
    for last in (False, True):
        intake.open()
        try:
            if intake.have < intake.entry.size:
                source.fetch(intake)
            intake.finish()
            return
        except Spoilt as error:
            if last:
                raise StoreError(f"{error}, twice: its source is damaged") from None


def _watch(job: Job) -> None:
    while not job.ended.wait(REPORT):
        job.report()
