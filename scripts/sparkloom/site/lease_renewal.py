"""Beside a run of Ansible: renews its Lease, and lets go when that process ends, however it ends.

`python -m sparkloom.site.lease_renewal KUBECONFIG SITE NOTES`, with the operation as JSON on standard input. A process
of its own, since Ansible forks for every task and a thread would be forked along. NOTES is the file where the callback
sparkloom_verdict writes the stage, and at the end how it went.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.site import lease, patience
from sparkloom.site.lease import Book, Operation

LOOK = 1.0
GOOD = "done"


def keep(
    book: Book,
    mine: Operation,
    notes: Path,
    *,
    alive: Callable[[str], bool] = lease.alive,
    end: Callable[[int, int], None] = os.kill,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Until the run has ended or the Lease is somebody else's; says which."""
    last, renewed = mine.stage, clock()
    while alive(mine.process):
        stage = json_text.kept(notes).get("stage", "")
        if stage != last or clock() - renewed >= lease.RENEW:
            last, renewed = stage, clock()
            if _guarded(_renew, book, mine, stage) is False:
                end(int(mine.process.partition("-")[0]), signal.SIGINT)  # as Ctrl-C: a task that runs comes to its end
                return "taken over"
        sleep(LOOK)
    told = json_text.kept(notes)
    _guarded(_let_go, book, mine, told)
    notes.unlink(missing_ok=True)
    return str(told.get("ended", lease.ENDED))


def _renew(book: Book, mine: Operation, stage: str) -> bool:
    other, there = book.read()
    if other is None or not other.same(mine):
        return other is None  # a cluster that was taken away or made anew has none
    book.write(replace(mine, since=other.since, stage=stage), there)
    return True


def _let_go(book: Book, mine: Operation, told: dict[str, str]) -> None:
    """A run that came to its end leaves nothing; of another one it stays known how far it came."""
    other, there = book.read()
    if other is None or not other.same(mine):
        return
    if told.get("ended") == GOOD:
        book.remove()
    else:
        book.write(replace(other, state=lease.ENDED, stage=told.get("stage", "")), there)


def _guarded(work: Callable[..., Any], *words: Any) -> Any:
    """A cluster that is away for a while is no reason to end: the next look may find it."""
    try:
        return work(*words)
    except Exception:  # the API's, urllib3's, ssl's: it comes again in ten seconds
        return None


def main(words: list[str]) -> int:
    from kubernetes import client

    kubeconfig, site, notes = words
    api = client.CoordinationV1Api(patience.api_client(kubeconfig))
    keep(Book(api, site), Operation(**json.load(sys.stdin)), Path(notes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
