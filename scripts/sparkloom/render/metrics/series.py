"""Which series there are, by who gives them. Alerts and dashboards use no other (tests/render/metrics)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.launch import engines
from sparkloom.onnode.host_metrics import main as host_metrics
from sparkloom.onnode.rank import exposition
from sparkloom.onnode.waker import metrics as waker

RANKS, ENGINES, ROUTER, HOSTS = "sparkloom-ranks", "sparkloom-engines", "sparkloom-router", "sparkloom-hosts"
WAKER = "sparkloom-waker"
_READ: dict[str, Any] = document.own(Path(__file__).with_suffix(".yml").read_text())
PEOPLE: list[str] = _READ["people"]
NODE: dict[str, list[str]] = _READ["node"]
SELECTOR = re.compile(r"<(queued|running|generated|cache_usage|accept_length)([^<>]*)>")
# Of Prometheus itself, for each target.
SCRAPED = ("up",)


@cache
def named(ours: str) -> tuple[str, ...]:
    """What each engine calls one of the gauges of its measure.json: `queued`, `running`, `generated`."""
    gauges = (engine["gauges"] for engine in engines.measured())
    return tuple(sorted(name for each in gauges for name, (meant, _) in each.items() if meant == ours))


def selected(expr: str) -> str:
    """A query with its selectors of engines' series spelt out: `<queued,group="a">`, whatever each engine calls it."""
    return SELECTOR.sub(lambda found: f'{{__name__=~"{"|".join(named(found[1]))}"{found[2]}}}', expr)


@cache
def known() -> frozenset[str]:
    told = (name for engine in engines.measured() for name in (*engine["gauges"], *engine["moves"]))
    node = (name for names in NODE.values() for name in names)
    return frozenset((*exposition.NAMES, *host_metrics.NAMES, *waker.NAMES, *PEOPLE, *SCRAPED, *node, *told))
