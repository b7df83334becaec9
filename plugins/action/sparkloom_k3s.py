"""K3s, seen from the controller: what each machine should have, what to do there, and the administrator's access."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.site import ansible
from sparkloom.site.k3s import steps


class ActionModule(ansible.Action, ActionBase):
    _supports_check_mode = True

    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        step = steps.Step(ansible.inventory, task_vars, args, dry=bool(self._task.check_mode))
        return dict(getattr(step, args["do"])())
