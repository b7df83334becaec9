"""What each node should have on the rails: the netplan file, the functions, the pings to the others."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter, api, fabric, nodefiles


class ActionModule(adapter.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = api.cluster(adapter.inventory(task_vars))
        return {"nodes": nodefiles.every(cluster, fabric.plan(cluster))}
