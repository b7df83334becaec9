"""What each node should have on the rails: the netplan file, the functions, the pings to the others."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import case
from sparkloom.launch import fabric
from sparkloom.site import ansible, nodefiles


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = case.cluster(ansible.inventory(task_vars))
        return {"nodes": nodefiles.every(cluster, fabric.plan(cluster))}
