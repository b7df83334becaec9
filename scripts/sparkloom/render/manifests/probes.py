"""Probes for an engine that loads for minutes.

A supervised rank is asked through its supervisor's own words: rank 0 is ready when a token came over the whole group,
the others when rank 0 says so. Nothing here restarts a loading engine; the supervisor has its own budgets.

An engine without a supervisor is asked over HTTP on rank 0; the other ranks answer no requests.
"""

from __future__ import annotations

import math
from typing import Any

from sparkloom.launch import engines
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render.manifests import supervision

PERIOD = 10
EXEC_SECONDS = 10  # Python starts in 0.1 s; on a node that loads weights from disk it may take much longer


def probes(launch: Launch, rank: Rank) -> dict[str, Any]:
    if supervision.supervised(launch):
        return {
            "startupProbe": _ask("started", 2, 60),
            "readinessProbe": _ask("ready", 5, 1),
            "livenessProbe": _ask("live", 30, 4),
        }
    return {} if rank.index else _over_http(launch)


def _ask(what: str, period: int, failures: int) -> dict[str, Any]:
    return {
        "exec": {"command": [*supervision.COMMAND, "probe", what]},
        "periodSeconds": period,
        "timeoutSeconds": EXEC_SECONDS,
        "failureThreshold": failures,
    }


def _over_http(launch: Launch) -> dict[str, Any]:
    engine = engines.get(launch.engine)
    budget = max(supervision.START_SECONDS, 3 * (launch.profile.profile.model.measured.load_seconds or 0))
    return {
        "startupProbe": {
            **_get(engine.alive_path),
            "periodSeconds": PERIOD,
            "timeoutSeconds": 5,
            "failureThreshold": math.ceil(budget / PERIOD),
        },
        "readinessProbe": {**_get(engine.ready_path), "periodSeconds": 30, "timeoutSeconds": 25, "failureThreshold": 3},
        "livenessProbe": {**_get(engine.alive_path), "periodSeconds": 30, "timeoutSeconds": 25, "failureThreshold": 4},
    }


def _get(path: str) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "api", "scheme": "HTTP"}}
