"""Run the module of this name and keep between which two moments of the controller's clock it answered."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        asked = time.time()
        answer = self._execute_module(module_args=self._task.args, task_vars=task_vars)
        return result | answer | {"asked": asked, "answered": time.time()}
