from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.render import keys
from sparkloom.site import ansible, client
from sparkloom.site.doctor import drift

DOCUMENTATION = r"""
module: sparkloom_group_secret
short_description: Make the Secret that the ranks of one group know each other by, once
description: [What is in it is in no result and in no log. One that is usable stays as it is.]
options:
  name: {type: str, required: true, description: [The Secret in the site's namespace.]}
  labels: {type: dict, required: true, description: [Whose it is.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        name = args["name"]
        reached = client.of(ansible.cluster(task_vars))
        before = reached.secret(name)
        data = keys.group_data(before)
        made = reached.put_secret(name, data, labels=args["labels"], dry=bool(self._task.check_mode))
        return {
            "changed": made,
            "drift": drift.secret(
                name, there=before is not None, differs=made, expected="what the ranks know each other by"
            ),
            "msg": f"made the Secret {name}" if made else name,
        }
