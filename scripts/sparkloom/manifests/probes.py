"""Probes for an engine that loads for minutes.

Rank 0 alone is asked over HTTP. The other ranks answer no requests; what SGLang serves there says 200
even when its scheduler is dead (sglang#21486), so asking would only hide a fault.
"""

from __future__ import annotations

import math
from typing import Any

from sparkloom import engines
from sparkloom.launch import Launch, Rank

STARTUP_SECONDS = 45 * 60  # 5x the longest load measured (490 s), and room for graphs and kernels built cold
PERIOD = 10


def probes(launch: Launch, rank: Rank) -> dict[str, Any]:
    if rank.index:
        return {}
    engine = engines.get(launch.engine)
    budget = max(STARTUP_SECONDS, 3 * (launch.profile.profile.model.measured.load_seconds or 0))
    return {
        "startupProbe": {
            **_get(launch, engine.alive_path),
            "periodSeconds": PERIOD,
            "timeoutSeconds": 5,
            "failureThreshold": math.ceil(budget / PERIOD),
        },
        # SGLang waits up to 20 s for a token before it calls itself unhealthy: ask longer than that, and
        # bear two minutes of silence before a restart, which costs many more.
        "readinessProbe": {
            **_get(launch, engine.ready_path),
            "periodSeconds": 30,
            "timeoutSeconds": 25,
            "failureThreshold": 3,
        },
        "livenessProbe": {
            **_get(launch, engine.alive_path),
            "periodSeconds": 30,
            "timeoutSeconds": 25,
            "failureThreshold": 4,
        },
    }


def _get(launch: Launch, path: str) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "api", "scheme": "HTTP"}}
