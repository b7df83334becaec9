from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.launch import fabric
from sparkloom.site import ansible, nodefiles

DOCUMENTATION = r"""
module: sparkloom_fabric
short_description: Plan what each node has on the rails
description:
  - From the inventory's fabric.yml; it takes no options.
  - C(nodes) has the files and pings of each, C(rails) the names of the rails.
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        plan = fabric.plan(cluster)
        return {"nodes": nodefiles.every(cluster, plan), "rails": list(plan.rails)}
