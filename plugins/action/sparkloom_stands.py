from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.base.errors import InputError
from sparkloom.site import ansible, client, workload
from sparkloom.site.checks import report

DOCUMENTATION = r"""
module: sparkloom_stands
short_description: Wait until every Deployment and DaemonSet that was applied has all its pods
description: [Says every ten seconds what is missing and why; fails with the cause. A dry run looks once.]
options:
  objects: {type: list, elements: dict, required: true, description: [What was applied.]}
  timeout: {type: float, required: true, description: [Seconds that it may take.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        reached = client.of(ansible.cluster(task_vars))
        if self._task.check_mode:
            return {"rows": [report.as_dict(finding) for finding in workload.late(reached, args["objects"])]}
        outcome = workload.wait(reached, args["objects"], args["timeout"], Display().display)
        if not outcome.ready:
            raise InputError.single("the cluster", outcome.message, rule="does-not-stand")
        return {"msg": outcome.message}
