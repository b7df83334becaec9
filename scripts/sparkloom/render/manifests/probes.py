"""Probes for an engine that loads for minutes, on a node that may have nothing left for them.

A supervised rank is asked over HTTP, and its supervisor answers by itself (onnode/rank/probes.py): rank 0 is ready when
a token came over the whole group, the others when rank 0 says so. Nothing here restarts a loading or a compiling
engine; the supervisor has its own budgets. The kubelet kills a supervisor only when it is truly gone: a node that was
at load 60 let probes time out, and four healthy ranks were killed for it.

An engine without a supervisor is asked over HTTP on rank 0; the other ranks answer no requests.
"""

from __future__ import annotations

import math
from typing import Any

from sparkloom.launch import engines, patience
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render.manifests import supervision

PERIOD = 10
GONE_SECONDS = 600  # without one good answer, before a container is killed
SLOW_SECONDS = 30  # for an answer that takes microseconds, by a node that swaps


def probes(launch: Launch, rank: Rank) -> dict[str, Any]:
    if supervision.supervised(launch):
        return {
            "startupProbe": _ask("started", 2, GONE_SECONDS // 2),
            "readinessProbe": _ask("ready", 5, 1),
            "livenessProbe": _ask("live", PERIOD, GONE_SECONDS // PERIOD),
        }
    return {} if rank.index else _over_http(launch)


def _ask(what: str, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": f"/{what}", "port": supervision.PROBES, "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": SLOW_SECONDS,
        "failureThreshold": failures,
    }


def _over_http(launch: Launch) -> dict[str, Any]:
    engine = engines.get(launch.engine)
    budget = patience.start_seconds(launch.profile.profile.model.measured.load_seconds)
    return {
        "startupProbe": {
            **_get(engine.alive_path),
            "periodSeconds": PERIOD,
            "timeoutSeconds": SLOW_SECONDS,
            "failureThreshold": math.ceil(budget / PERIOD),
        },
        "readinessProbe": {**_get(engine.ready_path), "periodSeconds": 30, "timeoutSeconds": 25, "failureThreshold": 3},
        "livenessProbe": {
            **_get(engine.alive_path),
            "periodSeconds": 30,
            "timeoutSeconds": SLOW_SECONDS,
            "failureThreshold": GONE_SECONDS // 30,
        },
    }


def _get(path: str) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "api", "scheme": "HTTP"}}
