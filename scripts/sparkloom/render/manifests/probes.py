"""Probes for an engine that loads for minutes, on a node that may have nothing left for them.

A rank is asked over HTTP, and its supervisor answers by itself (onnode/rank/probes.py): rank 0 is ready when
a token came over the whole group, the others when rank 0 says so. Nothing here restarts a loading or a compiling
engine; the supervisor has its own budgets. The kubelet kills a supervisor only when it is truly gone: a node that was
at load 60 let probes time out, and four healthy ranks were killed for it.
"""

from __future__ import annotations

from typing import Any

from sparkloom.render.manifests import supervision

PERIOD = 10
GONE_SECONDS = 600  # without one good answer, before a container is killed
SLOW_SECONDS = 30  # for an answer that takes microseconds, by a node that swaps


def probes() -> dict[str, Any]:
    return {
        "startupProbe": _ask("started", 2, GONE_SECONDS // 2),
        "readinessProbe": _ask("ready", 5, 1),
        "livenessProbe": _ask("live", PERIOD, GONE_SECONDS // PERIOD),
    }


def _ask(what: str, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": f"/{what}", "port": supervision.PROBES, "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": SLOW_SECONDS,
        "failureThreshold": failures,
    }
