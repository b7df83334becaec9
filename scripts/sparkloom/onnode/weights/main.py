"""`store start|status|stop|check|list|remove`: JSON in on standard input, JSON out, so that a program can ask.

A transfer fills this node's store from its source while the next node reads along, and leaves when that one has all.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Protocol

from sparkloom.base import json_text
from sparkloom.onnode import asked as program
from sparkloom.onnode.weights import check, layout, serve
from sparkloom.onnode.weights.folder import Folder
from sparkloom.onnode.weights.hub import Hub
from sparkloom.onnode.weights.intake import Intake, Spoilt
from sparkloom.onnode.weights.job import RUN, SECRET, Job, keep_secret
from sparkloom.onnode.weights.layout import Snapshot, Store
from sparkloom.onnode.weights.names import StoreError
from sparkloom.onnode.weights.peer import Peer, expected

STOPPING = 5.0
REPORT = 0.5  # seconds between two looks at the progress
LINGER = 120.0  # how long the next node may be silent before it is no more waited for
LONGEST = 24 * 3600.0  # how long this node gives after it has all, whatever the next one does


def status(run: Path = RUN) -> dict[str, Any]:
    """What the last transfer on this node said, and whether it still lives."""
    if not (report := json_text.kept(run / "status.json")):
        return {"state": "none", "alive": False}
    alive = _alive(report["pid"])
    if not alive and report["state"] not in {"done", "failed"}:
        report |= {"state": "failed", "cause": f"the transfer ended without a word (killed?); its log is {run}/log"}
    return report | {"alive": alive}


def _alive(pid: int) -> bool:
    """Whether that process is one of ours, not a later one with the same number."""
    try:
        return b"weights" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def stop(run: Path = RUN) -> dict[str, Any]:
    report = status(run)
    if report["alive"]:
        os.kill(report["pid"], signal.SIGTERM)
        until = time.monotonic() + STOPPING
        while _alive(report["pid"]) and time.monotonic() < until:
            time.sleep(0.05)
        if _alive(report["pid"]):
            os.kill(report["pid"], signal.SIGKILL)
    return status(run)


def start(spec: dict[str, Any], run: Path = RUN) -> dict[str, Any]:
    """Begin a transfer in the background, or find the same one at work: it outlives the connection that began it."""
    report = status(run)
    if report["alive"] and report["state"] not in {"done", "failed"}:
        if report["job"] == spec["job"] and _same_manifests(report, spec):
            keep_secret(run, spec["secret"])
            return report | {"joined": True}
        if report["job"] != spec["job"]:
            raise StoreError(
                f"another transfer is at work here (process {report['pid']}); wait for it, or kill that process"
            )
    stop(run)
    job = Job(spec, run)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        _detach(run / "log")
        job.report()
        os._exit(0 if transfer(job) else 1)
    until = time.monotonic() + STOPPING
    while status(run).get("pid") in {None, report.get("pid")} and time.monotonic() < until:
        time.sleep(0.02)
    return status(run) | {"joined": False}


def _same_manifests(report: dict[str, Any], spec: dict[str, Any]) -> bool:
    """A transfer that began with what the first node said then, and it says something else now, begins anew."""
    known, given = report.get("manifests"), spec.get("manifests")
    return not known or not given or bool(known == given)


def _detach(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    words = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for source, target in ((nothing, 0), (words, 1), (words, 2)):
        os.dup2(source, target)


def checked(asked: dict[str, Any]) -> list[dict[str, Any]]:
    store, deep = Store(asked["store"]), bool(asked.get("deep"))
    return [check.check(store, want["id"], want["revision"], deep=deep) for want in asked["models"]]


COMMANDS: program.Commands = {
    "start": start,
    "status": lambda asked: status(),
    "stop": lambda asked: stop(),
    "check": checked,
    "list": lambda asked: layout.listing(Store(asked["store"])),
    "remove": lambda asked: layout.remove(Store(asked["store"]), asked["remove"]),
}


def refusal(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or ''}"
    return str(error) if isinstance(error, StoreError) else ""


def main(words: list[str]) -> int:
    return program.run("store", words, COMMANDS, refusal)


class Source(Protocol):
    def fetch(self, intake: Intake) -> None: ...


def transfer(job: Job) -> bool:
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
