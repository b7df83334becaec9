"""The site's API key: made once as a file of this machine, and given to the engine as a Secret. Never in a result."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.base.repository import place
from sparkloom.render import keys
from sparkloom.site import ansible, client


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        dry = bool(self._task.check_mode)
        path = place(args["file"])
        key, made = keys.ensure(path, dry=dry)
        cluster = client.Client.at(args["kubeconfig"], args["namespace"])
        before = cluster.secret(keys.SECRET)
        stored = cluster.put_secret(keys.SECRET, keys.secret_data(key), dry=dry)
        words = f"made {path}" if made else f"{path}"
        return {
            "changed": made or stored,
            "replaced": stored and before is not None,
            "file": str(path),
            "msg": words,
        }
