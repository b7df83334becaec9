from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.launch import fabric
from sparkloom.site import ansible
from sparkloom.site.foreign import adopt, judge
from sparkloom.site.foreign.node import Node

DOCUMENTATION = r"""
module: sparkloom_foreign
short_description: Judge what somebody else has set up on the rails, and say what taking it over changes
description: [C(nodes) has the files and addresses of each node that go with the consent; without it the task fails.]
options:
  probe: {type: str, required: true, description: [Variable that every node registered from sparkloom_definitions.]}
  adopt: {type: bool, default: false, description: [Consent to take over what can be taken over.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        plan = fabric.plan(cluster)
        only = ansible.asked(task_vars)
        read = {
            host: found["network"]
            for host, found in ansible.registered(task_vars, args["probe"]).items()
            if host in only and "network" in found
        }
        rows = [row for host in read for row in judge.judge(cluster, plan, host, read[host], args["adopt"])]
        nothing: ansible.Data = {"files": [], "addresses": []}
        nodes = {
            host: adopt.changes(Node(host, cluster, plan, network)) if args["adopt"] else nothing
            for host, network in read.items()
        }
        return {**ansible.verdict(rows, "nobody else defines the rails"), "nodes": nodes}
