"""The engine's own counters for a Prometheus, which needs no engine's key for them, with this rank's labels on each.

An engine that somebody took over may write what it likes there. So only names with the engine's own prefix pass, and
none that brings a label of ours: it cannot speak of another group, a host or a person.
"""

from __future__ import annotations

import re

from sparkloom.onnode import prometheus
from sparkloom.onnode.rank import answers, exposition
from sparkloom.onnode.rank.order import Order

PATH = "/metrics/engine"
OURS = re.compile(r"""[{,]\s*(?:group|rank|node)\s*=""")
LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?=[^}])|\{\}|(?=[ \t]))")
NONE = "# this engine has no counters in this form\n"


def prefix(order: Order) -> str:
    """What its names begin with, as `vllm:`; empty where it has no page of this form.

    TensorRT-LLM's is JSON, and who reads it takes what it says from the supervisor.
    """
    return order.requests[0].partition(":")[0] + ":" if order.metrics and order.requests else ""


def page(order: Order, rank: int) -> str | None:
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
