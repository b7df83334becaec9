"""Run the module of this name and keep between which two moments of the controller's clock it answered."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.site import node_module


class ActionModule(ActionBase):
    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        asked = time.time()
        answer = node_module.run(self, self._task.args, task_vars, Path(__file__).parents[1])
        return result | answer | {"asked": asked, "answered": time.time()}
