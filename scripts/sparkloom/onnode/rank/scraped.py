"""The two pages for a Prometheus: what the supervisor knows, and the engine's own counters, which need no key here.

An engine that somebody took over may write into its counters what it likes. So only names with the engine's own prefix
pass, and none that brings a label of ours: it cannot speak of another group, a host or a person.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late

from sparkloom.onnode import prometheus
from sparkloom.onnode.rank import answers, exposition
from sparkloom.onnode.rank.order import Order
from sparkloom.onnode.rank.status_log import StatusLog

ENGINE = "/metrics/engine"
PATIENCE = 8.0  # less than a scrape waits
OURS = re.compile(r"""[{,]\s*(?:group|rank|node)\s*=""")
LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?=[^}])|\{\}|(?=[ \t]))")
NONE = "# this engine has no counters in this form\n"
PAGES: dict[str, Callable[[StatusLog], str | None]] = {
    exposition.PATH: lambda log: exposition.page(log.order, log.rank, dict(log.status), time.time()),
    ENGINE: lambda log: engine(log.order, log.rank),
}


class Scraped:
    """Each made in a thread, once for all who ask meanwhile: an engine may be slow."""

    def __init__(self, log: StatusLog) -> None:
        self.log, self._pool = log, ThreadPoolExecutor(len(PAGES))
        self._made: dict[str, Future[str | None]] = {}
        self._lock = threading.Lock()

    def page(self, path: str) -> str | None:
        """None when it does not come in time; one that is late is waited for by the next who asks."""
        with self._lock:
            made = self._made.get(path)
            if made is None or made.done():
                made = self._made[path] = self._pool.submit(PAGES[path], self.log)
        try:
            return made.result(PATIENCE)
        except Late:
            return None


def prefix(order: Order) -> str:
    """What its names begin with, as `vllm:`; empty where it has no page of this form.

    TensorRT-LLM's is JSON, and who reads it takes what it says from the supervisor.
    """
    return order.requests[0].partition(":")[0] + ":" if order.metrics and order.requests else ""


def engine(order: Order, rank: int) -> str | None:
    """None when the engine gives none now."""
    if rank or not (begins := prefix(order)):
        return NONE
    told = answers.page(order)
    return None if told is None else labelled(told, begins, prometheus.labels(exposition.labels(order, rank)))


def labelled(text: str, begins: str, own: str) -> str:
    kept = []
    for line in text.split("\n"):
        if line.startswith(begins):
            found = LINE.match(line)
            if found and not OURS.search(line):
                more = "{" + own + ("," if found[2] == "{" else "}")
                kept.append(found[1] + more + line[found.end() :].rstrip("\r"))
        elif line.startswith((f"# HELP {begins}", f"# TYPE {begins}")):
            kept.append(line.rstrip("\r"))
    return "".join(f"{line}\n" for line in kept)
