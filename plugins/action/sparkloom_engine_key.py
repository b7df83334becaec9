from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.render import keys
from sparkloom.site import ansible, client
from sparkloom.site.doctor import drift

DOCUMENTATION = r"""
module: sparkloom_engine_key
short_description: Make the Secret with the engine's own key, once
description: [What is in it is in no result and in no log. One that is usable stays as it is; no client ever has it.]
options:
  name: {type: str, required: true, description: [The Secret in the site's namespace.]}
  labels: {type: dict, required: true, description: [Whose it is.]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        name, reached = args["name"], client.of(ansible.cluster(task_vars))
        before = reached.secret(name)
        # that of a site with one profile outlives its group: the next one has it
        labels = {} if name == keys.SECRET else args["labels"]
        made = reached.put_secret(name, keys.engine_data(before), labels=labels, dry=bool(self._task.check_mode))
        return {
            "changed": made,
            "drift": drift.secret(
                name, there=before is not None, differs=made, expected="what the engine is asked with"
            ),
            "msg": f"made the Secret {name}" if made else name,
        }
