"""A task that this machine does, as `do: fabric.plan` says it: a function of scripts/sparkloom/site/tasks."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.vars.clean import remove_internal_keys

from sparkloom.site import executor

DOCUMENTATION = r"""
module: sparkloom
short_description: Have this machine plan, judge or ask the cluster
description: ["Other options are the parameters of the function that C(do) names."]
options:
  do: {type: str, required: true, description: ["A function of scripts/sparkloom/site/tasks, as C(fabric.plan)."]}
"""


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result, told = super().run(tmp, task_vars), executor.run(self, task_vars)
        remove_internal_keys(told)  # as of any module: a node's answer adds no host to the run
        return result | told
