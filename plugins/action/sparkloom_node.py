"""A task that a node does, as `do: files` says it: a module of scripts/sparkloom/onnode/tasks, or watched from here."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.vars.clean import remove_internal_keys

from sparkloom.site import executor

DOCUMENTATION = r"""
module: sparkloom_node
short_description: Have a node do something
description: ["Other options are the parameters of the function that C(do) names. A dry run tells what would change."]
options:
  do:
    type: str
    required: true
    description:
      - A module of scripts/sparkloom/onnode/tasks, as C(files).
      - Where this machine follows what the node does a function of scripts/sparkloom/site/tasks, as C(image.pull).
"""


class ActionModule(ActionBase):
    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result, told = super().run(tmp, task_vars), executor.run(self, task_vars)
        remove_internal_keys(told)  # as of any module: a node's answer adds no host to the run
        return result | told
