"""Ansible asks for this name where a task's module has no action of its own. Ours are run without its library.

A module that Ansible ships has its library compiled anew on the node each time; without it a run costs controller and
node a third of the processor's time (scripts/bench/modules.py: 3.2 times less on 2026-11-23 at 03d87b6). All others go
the usual way, and so do ours where it cannot be otherwise: without pipelining, in the background, with an environment
of the task's own, or where a module uses more of that library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from sparkloom.site import node_module


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        if node_module.fits(self):
            return node_module.run(self, self._task.args, task_vars, Path(__file__).parents[1])
        parts = ("task", "connection", "play_context", "loader", "templar", "shared_loader_obj")
        given = {part: getattr(self, f"_{part}") for part in parts}
        usual = self._shared_loader_obj.action_loader.get("ansible.builtin.normal", **given)
        return dict(usual.run(task_vars=task_vars))
