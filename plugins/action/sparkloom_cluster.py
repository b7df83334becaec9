from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible, client
from sparkloom.site.checks import kubernetes

DOCUMENTATION = r"""
module: sparkloom_cluster
short_description: Judge whether the cluster has what a rendered profile asks for
description: ["Looks at nodes, GPUs, runtime class and networks. Changes nothing."]
options:
  objects: {type: list, elements: dict, required: true, description: [What sparkloom_render gave.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        facts = client.of(cluster).facts("nvidia")
        return ansible.verdict(kubernetes.judge(cluster, args["objects"], facts), "the cluster has what it asks for")
