"""What each node should have on the rails: the netplan file, the functions, the pings to the others."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.launch import fabric
from sparkloom.site import ansible, nodefiles

DOCUMENTATION = r"""
module: sparkloom_fabric
short_description: Plan what each node has on the rails
description: [From the inventory's fabric.yml; it takes no options. The result is in C(nodes), by node.]
author: [Sparkloom]
"""


class ActionModule(ansible.Action, ActionBase):
    documentation = DOCUMENTATION

    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = ansible.cluster(task_vars)
        return {"nodes": nodefiles.every(cluster, fabric.plan(cluster))}
