from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.site import ansible, client, watch

DOCUMENTATION = r"""
module: sparkloom_wait
short_description: Wait until every rank of a served profile is ready
description: [Says every change in a line; fails with the last words of a rank that cannot.]
options:
  labels: {type: dict, required: true, description: [Whose pods.]}
  config_hash: {type: str, required: true, description: [Pods of another configuration do not count.]}
  ranks: {type: int, required: true, description: [How many there are.]}
  timeout: {type: float, required: true, description: [Seconds from applied to ready.]}
  read: {type: str, default: "", description: [What each rank should have read; others are renewed.]}
  restarts: {type: int, required: true, description: [A rank that ended this often is given up.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        outcome = watch.wait(client.of(ansible.cluster(task_vars)), watch.ServedGroup(**args), Display().display)
        pods = {state.rank: state.pod for state in outcome.states}
        return {"failed": not outcome.ready, "msg": outcome.message, "seconds": outcome.seconds, "pods": pods}
