"""Which series there are, by who gives them. Alerts and dashboards use no other (tests/render/metrics)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.launch import engines

RANKS, ENGINES, ROUTER, HOSTS = "sparkloom-ranks", "sparkloom-engines", "sparkloom-router", "sparkloom-hosts"
WAKER = "sparkloom-waker"
READ: dict[str, Any] = document.own(Path(__file__).with_suffix(".yml").read_text())
NODE: dict[str, list[str]] = READ["node"]
SELECTOR = re.compile(r"<(queued|running|generated|cache_usage|accept_length)([^<>]*)>")


@cache
def named(ours: str) -> tuple[str, ...]:
    """What each engine calls one of the gauges of its measure.json: `queued`, `running`, `generated`."""
    gauges = (engine["gauges"] for engine in engines.measured())
    return tuple(sorted(name for each in gauges for name, (meant, _) in each.items() if meant == ours))


def selected(expr: str) -> str:
    """A query with its selectors of engines' series spelt out: `<queued,group="a">`, whatever each engine calls it."""
    return SELECTOR.sub(lambda found: f'{{__name__=~"{"|".join(named(found[1]))}"{found[2]}}}', expr)
