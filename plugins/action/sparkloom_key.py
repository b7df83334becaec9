from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.base.repository import place
from sparkloom.render import keys
from sparkloom.site import ansible, client, rotation
from sparkloom.site.groups import secrets

DOCUMENTATION = r"""
module: sparkloom_key
short_description: Make the clients' key once, and keep it as a Secret
description: [The key itself is in no result and in no log.]
options:
  file: {type: path, required: true, description: ["Where it is kept, 0600; a relative path starts at the repository."]}
  pod: {type: str, description: ["Rank 0's pod: with it, wait until its supervisor takes this key and no other."]}
"""


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        dry = bool(self._task.check_mode)
        path = place(args["file"])
        reached = client.of(ansible.cluster(task_vars))
        kept, made = secrets.clients(reached, path, dry=dry)
        pod = args.get("pod")
        if pod and not dry:
            rotation.wait(reached, pod, keys.read(path), Display().display)
        return {
            "changed": made or kept.made,
            "drift": kept.drift,
            "file": str(path),
            "msg": f"made {path}" if made else f"{path}",
        }
