"""Prometheus' own programs for tests on loopback: fetched once (testbed/make/prometheus.py)."""

from __future__ import annotations

from functools import cache

from testbed.base import steps
from testbed.make import prometheus


@cache
def program(name: str) -> str:
    steps.quietly(prometheus.steps())
    return str(prometheus.program(name))
