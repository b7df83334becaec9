from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.render.manifests import multus
from sparkloom.site import ansible, client
from sparkloom.site.checks import networks

DOCUMENTATION = r"""
module: sparkloom_networks
short_description: Judge the pods' networks, or say what keeps Multus from running
description: [Reads only.]
options:
  waited_for: {type: str, description: [Multus' image that did not come up; the networks are judged without it.]}
  seconds: {type: int, description: [How long that was waited for.]}
  why: {type: str, description: [What the wait itself said.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_together = (("waited_for", "seconds", "why"),)

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        cluster = ansible.cluster(task_vars)
        reached = client.of(cluster)
        if args["waited_for"]:
            waiting = client.Client(reached.core, multus.NAMESPACE).waiting(multus.SELECTOR)
            rows = networks.absent(cluster, waiting, args["waited_for"], args["seconds"], args["why"])
            return ansible.verdict(rows, "")
        planned = networks.planned(cluster)
        rows = networks.judge(cluster, planned, reached.networks())
        return ansible.verdict(rows, f"{len(planned)} networks are as planned")
