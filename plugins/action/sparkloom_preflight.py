"""Judge what every node's probe read: one table for all nodes."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api
from sparkloom.checks import host


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = self._task.args

        def work() -> dict[str, Any]:
            cluster = api.cluster(adapter.inventory(task_vars))
            probes = adapter.registered(task_vars, args["probe"])
            rows = host.judge(cluster, probes, free_gib=float(args["free_gib"]))
            return adapter.verdict(rows, f"all checks hold on {len(cluster.nodes)} nodes")

        return result | adapter.guarded(work)
