"""Prometheus' own programs for tests on loopback: fetched once (testbed/make/prometheus.py)."""

from __future__ import annotations

from functools import cache

from testbed.make import prometheus


@cache
def program(name: str) -> str:
    for step in prometheus.steps():
        if not step.done():
            step.act(lambda text: None)
    return str(prometheus.program(name))
