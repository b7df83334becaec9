"""K3s, seen from the controller: what each machine should have, what to do there, and the administrator's access."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom import adapter
from sparkloom.k3s import steps


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = adapter.plain(self._task.args)
        step = steps.Step(adapter.inventory, task_vars, args, dry=bool(self._task.check_mode))
        return result | adapter.guarded(getattr(step, args["do"]))
