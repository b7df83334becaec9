from __future__ import annotations

from ansible.plugins.action import ActionBase

from sparkloom.base.repository import place
from sparkloom.render import keys
from sparkloom.site import ansible, client
from sparkloom.site.doctor import drift

DOCUMENTATION = r"""
module: sparkloom_key
short_description: Make the site's API key once, and keep it as a Secret
description: [The key itself is in no result and in no log.]
options:
  file: {type: path, required: true, description: ["Where it is kept, 0600; a relative path starts at the repository."]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        dry = bool(self._task.check_mode)
        path = place(args["file"])
        key, made = keys.ensure(path, dry=dry)
        reached = client.of(ansible.cluster(task_vars))
        before = reached.secret(keys.SECRET)
        stored = reached.put_secret(keys.SECRET, keys.secret_data(key), dry=dry)
        return {
            "changed": made or stored,
            "replaced": stored and before is not None,
            "drift": drift.secret(
                keys.SECRET, there=before is not None, differs=made or stored, expected=f"the key in {path}"
            ),
            "file": str(path),
            "msg": f"made {path}" if made else f"{path}",
        }
