"""`store start|status|stop|check|list|remove`: JSON in on standard input, JSON out, so that a program can ask."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from sparkloom.onnode import asked as program
from sparkloom.onnode.weights import agent, check, layout
from sparkloom.onnode.weights.job import RUN, Job, keep_secret
from sparkloom.onnode.weights.layout import Store
from sparkloom.onnode.weights.names import StoreError

STOPPING = 5.0


def status(run: Path = RUN) -> dict[str, Any]:
    """What the last transfer on this node said, and whether it still lives."""
    try:
        report: dict[str, Any] = json.loads((run / "status.json").read_text())
    except (FileNotFoundError, ValueError):
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
    run.mkdir(parents=True, exist_ok=True, mode=0o700)
    job = Job(spec, run)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        _detach(run / "log")
        job.report()
        os._exit(0 if agent.run(job) else 1)
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
