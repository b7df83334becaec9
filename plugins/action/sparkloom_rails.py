from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.launch import fabric
from sparkloom.site import ansible
from sparkloom.site.checks import rails

DOCUMENTATION = r"""
module: sparkloom_rails
short_description: Judge what every node read back from its rails
description: [One table for all nodes; fails when a rail is not as planned.]
options:
  probe: {type: str, required: true, description: [Variable that every node registered from sparkloom_probe.]}
  strangers: {type: bool, default: false, description: [Judge only who is let in that should not be.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        plan = fabric.plan(cluster)
        only = ansible.asked(task_vars)
        probes = ansible.registered(task_vars, args["probe"])
        if args["strangers"]:
            return ansible.verdict(rails.strangers(probes, only), "nobody but planned peers was let in")
        rows = rails.judge(cluster, plan, probes, only)
        where = f"between {len(cluster.nodes)} nodes"
        if len(only) < len(cluster.nodes):
            where = f"between {', '.join(sorted(only))} and what answers of the others"
        return ansible.verdict(rows, f"{len(plan.rails)} rails hold {where}")
