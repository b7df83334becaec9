"""What each node should have on the rails: the netplan file, the functions, the pings to the others."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api, fabric, nodefiles


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)

        def work() -> dict[str, Any]:
            cluster = api.cluster(adapter.inventory(task_vars))
            return {"nodes": nodefiles.every(cluster, fabric.plan(cluster))}

        return result | adapter.guarded(work)
