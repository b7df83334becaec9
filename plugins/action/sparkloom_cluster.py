"""Judge whether the cluster has what a rendered profile asks for."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible, client
from sparkloom.site.checks import kubernetes

DOCUMENTATION = r"""
module: sparkloom_cluster
short_description: Judge whether the cluster has what a rendered profile asks for
description: [Nodes, GPUs, runtime class and networks, in one table. Changes nothing.]
options:
  objects: {type: list, elements: dict, required: true, description: [What sparkloom_render gave.]}
author: [Sparkloom]
"""


class ActionModule(ansible.Action, ActionBase):
    documentation = DOCUMENTATION

    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        cluster = ansible.cluster(task_vars)
        facts = client.of(cluster).facts("nvidia")
        return ansible.verdict(kubernetes.judge(cluster, args["objects"], facts), "the cluster has what it asks for")
